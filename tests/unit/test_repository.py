"""scripts/repository.py: one address of the repository in packages, site and documents, or none."""

import re
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from tests.support.node_cluster import ROOT

URLS: Final = ("https://host.example/us/partiscope", "https://git.example.org/a/b/partiscope")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = spec_from_file_location("repository", ROOT / "scripts" / "repository.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(script: ModuleType, tmp_path: Path) -> Path:
    """The files of this checkout that name its address."""
    for name in script.PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    return tmp_path


def told(root: Path) -> set[str]:
    """What the packages, the site, and each command that clones say."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    site = tomllib.loads((root / "zensical.toml").read_text())["project"]
    texts = [(root / name).read_text() for name in ("README.md", "docs/start/install.md")]
    cloned = [it for text in texts for it in re.findall(r"(?m)^git clone (.+) partiscope &&", text)]
    assert len(cloned) == 2
    return {project["urls"]["Repository"], site["repo_url"], *cloned}


def test_the_address_stands_everywhere_also_when_it_changes(
    script: ModuleType, checkout: Path
) -> None:
    for url in URLS:
        script.write(checkout, url)
        assert script.address(checkout) == url
        assert told(checkout) == {url}
    before = {name: (checkout / name).read_text() for name in script.PLACES}
    script.write(checkout, URLS[-1])
    assert before == {name: (checkout / name).read_text() for name in script.PLACES}


@pytest.mark.parametrize("url", ["", "partiscope", "git@host:us/partiscope", "https://host", "a b"])
def test_what_is_no_address_changes_nothing(script: ModuleType, checkout: Path, url: str) -> None:
    with pytest.raises(ValueError, match="https://HOST/"):
        script.write(checkout, url)
    assert {(checkout / name).read_text() for name in script.PLACES} == {
        (ROOT / name).read_text() for name in script.PLACES
    }


def test_a_place_that_is_gone_is_told_before_anything_is_written(
    script: ModuleType, checkout: Path
) -> None:
    (checkout / "docs/start/install.md").write_text("make up\n")
    readme = (checkout / "README.md").read_text()
    with pytest.raises(ValueError, match="install"):
        script.write(checkout, URLS[0])
    assert (checkout / "README.md").read_text() == readme


def test_this_checkout_says_one_address(script: ModuleType) -> None:
    url = script.address(ROOT)
    for name, (pattern, form) in script.PLACES.items():
        (found,) = re.finditer(pattern, (ROOT / name).read_text())
        is_said = found[0] == form.format(url)
        assert is_said or (url == script.NOT_KNOWN and "https://" not in found[0]), name
