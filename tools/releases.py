"""Print the installed releases of what pyproject.toml names, and of further packages: tools/releases.py NAME..."""

import argparse
import re
from importlib import metadata

NAME = re.compile(r"[\w.-]+")


def releases(*further: str) -> dict[str, str]:
    """Return name and version of each package that Strandline or an extra of it requires, as far as it is installed."""
    required = {found[0] for line in metadata.requires("strandline") or () if (found := NAME.match(line))}
    installed = {}
    for name in sorted(required | set(further)):
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("further", nargs="*", metavar="NAME", help="a package that pyproject.toml does not name")
    print("\n".join(f"{name} {version}" for name, version in releases(*parser.parse_args().further).items()))
