"""Screens and widgets ask the session they were given, and the app for what Textual has."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.app import App

TUI = Path(__file__).parents[3] / "tui"
FILES = [*(TUI / "screens").glob("*.py"), *(TUI / "widgets").glob("*.py")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_screen_asks_the_application_for_nothing_of_ours(path: Path) -> None:
    asked = set(_asked_of_app(ast.parse(path.read_text())))
    assert {name for name in asked if not hasattr(App, name)} == set()


def test_what_is_asked_of_the_application_is_found() -> None:
    found = _asked_of_app(ast.parse("self.app.session.watched\nscreen.app.notify('x')"))
    assert list(found) == ["session", "notify"]


def _asked_of_app(tree: ast.AST) -> Iterator[str]:
    """Names of attributes that are asked of something's ``app``, and casts of it."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr="app"), attr=name):
                yield name
            case ast.Call(func=ast.Name(id="cast"), args=[_, ast.Attribute(attr="app")]):
                yield ast.unparse(node)
