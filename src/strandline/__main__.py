"""`python -m strandline`, where no script of that name is on the path."""

from strandline.cli import main

if __name__ == "__main__":
    main()
