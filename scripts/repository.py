"""Writes the address of the repository wherever people look for it.

    .venv/bin/python scripts/repository.py https://HOST/OWNER/partiscope

The setting is `Repository` in pyproject.toml; the metadata of the packages come from it. The site's
link, and the commands that clone, follow it here. The next `uv lock` and `make docs` need nothing.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
ADDRESS: Final = re.compile(r"https://[\w.-]+(?:/[\w.~-]+)+")
NOT_KNOWN: Final = "<this repository>"
"""The documents' word for it before it has an address."""
URLS: Final = """\
[project.urls]
Repository = "{0}"
Changelog = "{0}/blob/main/CHANGELOG.md"

[project.scripts]"""
PLACES: Final = {
    "pyproject.toml": (
        r"(?m)^(?:\[project\.urls\]\n(?:\w+ = .*\n)+\n)?\[project\.scripts\]",
        URLS,
    ),
    "zensical.toml": (r'(?m)^(?:repo_url = ".*"\n)?docs_dir = ', 'repo_url = "{0}"\ndocs_dir = '),
    "README.md": (r"(?m)(?<=^git clone ).+(?= partiscope && cd )", "{0}"),
    "docs/start/install.md": (r"(?m)(?<=^git clone ).+(?= partiscope && cd )", "{0}"),
}
"""Where the address stands, once in each: what finds the place, and what is written there."""


def address(root: Path) -> str:
    """The setting; where there is none, the documents' word."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    found: str = project.get("urls", {}).get("Repository", NOT_KNOWN)
    return found


def write(root: Path, url: str) -> None:
    """Set it, everywhere or nowhere.

    Raises:
        ValueError: it is no address, or a file has no place for it.
    """
    if ADDRESS.fullmatch(url) is None:
        raise ValueError(f"{url!r} is no address of a repository: https://HOST/OWNER/NAME")
    written: dict[Path, str] = {}
    for name, (pattern, form) in PLACES.items():
        text, count = re.subn(pattern, form.format(url), (root / name).read_text(), count=2)
        if count != 1:
            raise ValueError(f"{name} has {count} places for the address: mend PLACES")
        written[root / name] = text
    for file, text in written.items():
        file.write_text(text)


def main() -> None:
    """Write it into the checkout that the script lies in, or tell it."""
    if len(sys.argv) > 2:
        sys.exit(f"usage: {sys.argv[0]} [ADDRESS]")
    try:
        for url in sys.argv[1:]:
            write(ROOT, url)
    except ValueError as error:
        sys.exit(f"repository: {error}")
    print(address(ROOT))


if __name__ == "__main__":
    main()
