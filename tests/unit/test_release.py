"""scripts/release.py: a tag, and the same version everywhere, or nothing at all."""

import subprocess
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from tests.support.node_cluster import ROOT
from tests.support.phrases import lacking

ENTRY: Final = "# Changelog\n\n## Unreleased\n\n- A view.\n\n## 0.1.0 – 2026-11-27\n\n- All.\n"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = spec_from_file_location("release", ROOT / "scripts" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of this checkout that name its version, in a repository of their own."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a test")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "test@example.org")
    for file in ("pyproject.toml", "uv.lock"):
        (tmp_path / file).write_text((ROOT / file).read_text())
    (tmp_path / "CHANGELOG.md").write_text(ENTRY)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "All")
    return tmp_path


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def versions(root: Path) -> list[str]:
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())
    lock: dict[str, Any] = tomllib.loads((root / "uv.lock").read_text())
    (locked,) = [it["version"] for it in lock["package"] if it["name"] == "partiscope"]
    return [project["project"]["version"], locked]


def test_a_release_says_its_version_everywhere(script: ModuleType, checkout: Path) -> None:
    assert script.release(checkout, "0.2.0") == "v0.2.0"
    assert versions(checkout) == ["0.2.0", "0.2.0"]
    changelog = (checkout / "CHANGELOG.md").read_text()
    headings = [line.split(" – ")[0] for line in changelog.splitlines() if line.startswith("## ")]
    assert headings == ["## Unreleased", "## 0.2.0", "## 0.1.0"]
    assert git(checkout, "describe") == "v0.2.0"
    assert not git(checkout, "status", "--porcelain")


@pytest.mark.parametrize(
    ("version", "told"),
    [("0.2", "1.2.3"), ("v0.2.0", "1.2.3"), ("0.1.0", "0.1.0"), ("0.0.9", "0.1.0")],
)
def test_what_is_no_later_version_is_refused(
    script: ModuleType, checkout: Path, version: str, told: str
) -> None:
    git(checkout, "tag", "-a", "v0.1.0", "-m", "first")
    with pytest.raises(script.ReleaseError, match=told):
        script.release(checkout, version)
    assert not git(checkout, "status", "--porcelain")


def test_what_is_not_committed_is_not_released(script: ModuleType, checkout: Path) -> None:
    (checkout / "new.txt").touch()
    with pytest.raises(script.ReleaseError) as error:
        script.release(checkout, "0.2.0")
    assert not lacking(str(error.value), "new.txt")
    assert git(checkout, "tag") == ""


def test_a_second_release_needs_an_entry_of_its_own(script: ModuleType, checkout: Path) -> None:
    script.release(checkout, "0.2.0")
    with pytest.raises(script.ReleaseError, match="Unreleased"):
        script.release(checkout, "0.3.0")


def test_pictures_older_than_the_screens_are_taken_anew(
    script: ModuleType, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, day in (("docs/pictures/overview.png", "01"), ("tui/app.py", "30")):
        (checkout / file).parent.mkdir(parents=True)
        (checkout / file).write_text(day)
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"2026-11-{day}T12:00:00Z")
        git(checkout, "add", ".")
        git(checkout, "commit", "--quiet", "-m", file)
    assert script.pictures_days(checkout) == 29
    monkeypatch.setattr(script, "PICTURES_DAYS_MAX", 28)
    with pytest.raises(script.ReleaseError, match="29 days"):
        script.release(checkout, "0.2.0")
    (checkout / "docs/pictures/overview.png").write_text("new")
    git(checkout, "commit", "--quiet", "--all", "-m", "Pictures of today")
    assert script.release(checkout, "0.2.0") == "v0.2.0"


def test_this_checkout_says_one_version() -> None:
    assert len(set(versions(ROOT))) == 1
