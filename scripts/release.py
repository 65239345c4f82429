"""Makes a release of what is committed: version, changelog, commit and tag.

    .venv/bin/python scripts/release.py 0.2.0

A tag `vVERSION` is a release; pyproject.toml, uv.lock and CHANGELOG.md say the same version there.
Nothing is pushed: the script tells what to type next.
"""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

VERSION: Final = re.compile(r"\d+\.\d+\.\d+")
UNRELEASED: Final = "## Unreleased\n"
FILES: Final = {
    "pyproject.toml": r'(?m)^(version = ")[^"]+(")$',
    "uv.lock": r'(?m)^(name = "partiscope"\nversion = ")[^"]+(")$',
}
"""Where the version stands, once in each."""
PICTURES: Final = "docs/pictures"
SHOWN: Final = ("dashboard", "tui", "control/views")
"""What pictures show: those taken before the last change may show what is no longer there."""
PICTURES_DAYS_MAX: Final = 30


class ReleaseError(Exception):
    """Nothing was changed; the text says why and what to do."""


def release(root: Path, version: str) -> str:
    """Write, commit and tag; answers the tag.

    Raises:
        ReleaseError: it cannot be a release.
    """
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text()
    check(root, version, text)
    for name, pattern in FILES.items():
        replaced, count = re.subn(pattern, rf"\g<1>{version}\g<2>", (root / name).read_text())
        if count != 1:
            raise ReleaseError(f"{name} names the version {count} times: mend FILES")
        (root / name).write_text(replaced)
    today = datetime.now(UTC).date().isoformat()
    heading = f"{UNRELEASED}\nNothing yet.\n\n## {version} – {today}\n"
    changelog.write_text(text.replace(UNRELEASED, heading, 1))
    tag = f"v{version}"
    git(root, "commit", "--quiet", "-m", f"Version {version}", "--", *FILES, changelog.name)
    git(root, "tag", "-a", tag, "-m", f"Version {version}")
    return tag


def check(root: Path, version: str, changelog: str) -> None:
    """Refuse what is no release, before anything is written.

    Raises:
        ReleaseError: why.
    """
    if VERSION.fullmatch(version) is None:
        raise ReleaseError(f"{version!r} is no version: write it as 1.2.3")
    released = [it.removeprefix("v") for it in git(root, "tag", "--list", "v*").split()]
    older = [it for it in released if VERSION.fullmatch(it) and _numbers(it) >= _numbers(version)]
    if older:
        raise ReleaseError(f"{max(older, key=_numbers)} is released: choose a later version")
    if dirty := git(root, "status", "--porcelain"):
        raise ReleaseError(f"commit or remove these files first:\n{dirty}")
    if not changelog.partition(UNRELEASED)[2].partition("\n## ")[0].count("\n- "):
        raise ReleaseError("CHANGELOG.md has no entry under Unreleased: nothing to release")
    if (days := pictures_days(root)) > PICTURES_DAYS_MAX:
        raise ReleaseError(
            f"the pictures are {days} days older than the screens: run scripts/pictures.py, commit"
        )


def pictures_days(root: Path) -> int:
    """How many days the last change of the screens is later than the pictures; 0: none."""
    taken, changed = (
        int(git(root, "log", "-1", "--format=%ct", "--", *paths) or 0)
        for paths in ((f"{PICTURES}/*.png",), SHOWN)
    )
    return max(0, (changed - taken) // 86_400)


def git(root: Path, *words: str) -> str:
    """What a command of git writes."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def main() -> None:
    """Release the checkout that the script lies in."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} VERSION")
    try:
        tag = release(Path(__file__).resolve().parents[1], sys.argv[1])
    except ReleaseError as error:
        sys.exit(f"release: {error}")
    print(f"tagged {tag}. Next: `make dist audit`, `git push --follow-tags`, and attach dist/*")


if __name__ == "__main__":
    main()
