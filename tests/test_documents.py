"""The documents hold together: each is in the site's contents, and what they name is there.

Links between the documents are checked by `make docs`; here are those that leave them.
"""

import ast
import io
import itertools
import re
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from spark_metrics.window.history_points import SHAPES

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_NAMED: Final = re.compile(r"\b(docs/[\w./-]+\.md)\b")
_CODE: Final = re.compile(r"`(\w+)`")
_MODULE: Final = re.compile(
    r"(?<![\w./@-])(?:broker|control|dashboard|partiscope|planner|spark_metrics|tui)(?:\.[A-Za-z_]\w*)+"
)
_SETTINGS: Final = ("broker", "dashboard", "partiscope")
"""Names of settings begin so as well."""
_SOURCE: Final = re.compile(r"`([\w/]+\.py)`")
_FILE_IN_DOCUMENT: Final = re.compile(
    r"`((?:broker|control|dashboard|partiscope|planner|scripts|spark_metrics|tests|tui)"
    r"/[\w./]+(?:\.\w+|/))`"
)


def _listed(item: Any) -> Iterator[str]:
    if isinstance(item, str):
        yield item
    else:
        for below in item.values() if isinstance(item, dict) else item:
            yield from _listed(below)


def test_every_document_is_in_the_contents() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    assert sorted(_listed(nav)) == sorted(str(it.relative_to(DOCS)) for it in DOCS.rglob("*.md"))


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_of_the_files_beside_the_documents_lead_somewhere(name: str) -> None:
    links = _LINK.findall((ROOT / name).read_text())
    assert not [it for it in links if "://" not in it and not (ROOT / it.split("#")[0]).exists()]


def test_pictures_are_used() -> None:
    texts = [path.read_text() for path in (ROOT / "README.md", *DOCS.rglob("*.md"))]
    assert not [
        path.name
        for path in (DOCS / "pictures").iterdir()
        if not any(f"pictures/{path.name})" in text for text in texts)
    ]


def test_sources_name_documents_that_exist() -> None:
    pattern = ["*.py", "*.js", "*.toml", "*.sh", "Makefile", "*.md"]
    listed = subprocess.run(
        ["git", "grep", "-hoE", r"docs/[A-Za-z0-9_./-]+\.md", "--", *pattern],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not [name for name in set(listed.stdout.split()) if not (ROOT / name).exists()]


def test_documents_name_files_that_exist() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "README.md", *DOCS.rglob("*.md"))
        for name in _FILE_IN_DOCUMENT.findall(path.read_text())
        if not (ROOT / name).exists()
    ]
    assert not missing, "\n".join(missing)


def test_modules_that_are_named_exist() -> None:
    """In documents, comments and docstrings, by their dotted names."""
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in _tracked("*.md", "*.py")
        if _missing(path.read_text())  # most files need no parsing
        for name in _missing("\n".join(_prose(path)))
    ]
    assert not missing, "\n".join(missing)


def _missing(text: str) -> list[str]:
    names = _MODULE.findall(re.sub(r"\n\s*\.(?=\w)", ".", text))
    return [it for it in names if not (it.endswith((".md", ".toml")) or _exists(it))]


def test_documents_name_the_ends_of_paths_that_exist() -> None:
    paths = [f"/{path.relative_to(ROOT)}" for path in _tracked("*.py")]
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in _tracked("*.md")
        for name in _SOURCE.findall(path.read_text())
        if not any(it.endswith(f"/{name}") for it in paths)
    ]
    assert not missing, "\n".join(missing)


def _tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).exists()]


def _prose(path: Path) -> Iterator[str]:
    """A document, or comments and docstrings of a module."""
    text = path.read_text()
    if path.suffix != ".py":
        yield text
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@cache
def _exists(name: str) -> bool:
    """Whether a dotted name leads to a module, or to a word in one."""
    room, *parts = name.split(".")
    folder = ROOT / room
    is_setting = room in _SETTINGS and not any(folder.glob(f"{parts[0]}*"))
    while parts and (folder / parts[0]).is_dir():
        folder /= parts.pop(0)
    module = folder / f"{parts[0] if parts else '__init__'}.py"
    if not module.exists():
        return is_setting
    return all(re.search(rf"\b{part}\b", module.read_text()) for part in parts[1:])


def test_modules_that_are_gone_are_found() -> None:
    assert _MODULE.findall("control.planner, broker.id and planner.go.on") == [
        "control.planner",
        "broker.id",
        "planner.go.on",
    ]
    assert _exists("control.model.ids.TopicPartition")
    assert _exists("broker.id")
    assert not _exists("control.planner")
    assert not _exists("control.model.ids.NoSuchName")


def test_columns_of_history_are_those_of_the_store() -> None:
    rows = [
        [_CODE.findall(cell) for cell in line.split("|")[1:4]]
        for line in (DOCS / "reference" / "history.md").read_text().splitlines()
        if re.match(r"\| `\w+_history`", line)
    ]
    told = {key[0]: (key[1:], last, mean) for key, last, mean in rows}
    assert told == {
        name: (list(shape.key), list(shape.last), list(shape.mean))
        for name, shape in SHAPES.items()
    }


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_rows_of_tables_are_whole(path: Path) -> None:
    """A row that is broken over two lines becomes two rows on the page."""
    lines = path.read_text().splitlines()
    torn = [it for it in lines if it.startswith("|") and not it.endswith("|")]
    after = [
        below
        for above, below in itertools.pairwise(lines)
        if above.startswith("|") and below and not below.startswith("|")
    ]
    assert not [*torn, *after]
