"""`python -m strandline.cli` is `strandline`."""

from strandline.cli import main

main()
