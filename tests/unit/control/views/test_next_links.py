"""Texts of errors on a screen: commands are links, and no flag is told where none is typed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.views.next_links import Part, linked

CONTROL = Path(__file__).resolve().parents[4] / "control"
REFUSING = ("operations/catalogue", "planner", "model", "messages", "kafka/errors.py")
"""Where texts arise that a form can show."""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("see `partiscope topics list --bus b:1` now",
         [Part("see "), Part("Topics", "topics"), Part(" now")]),
        ("`partiscope moves watch mv-1 --bus b:1` shows it",
         [Part("mv-1", "moves/mv-1"), Part(" shows it")]),
        ("`partiscope brokers drain 103`", [Part("drain 103", "brokers/103")]),
        ("`partiscope status`", [Part("Overview", "overview")]),
        ("`partiscope topics create NAME` makes one",
         [Part("Topics", "topics"), Part(" makes one")]),
        ("`partiscope configs describe topic:orders` lists all",
         [Part("Configs of orders", "topics/orders/configs"), Part(" lists all")]),
        ("`partiscope configs describe broker:101`",
         [Part("Configs of 101", "brokers/101/configs")]),
        ("tick Create it (`--create`), or stop", [Part("tick Create it, or stop")]),
        ("run `partiscope doctor`", [Part("run `partiscope doctor`")]),
        ("`partiscope alerts` lists them", [Part("Alerts", "alerts"), Part(" lists them")]),
        ("`partiscope alerts test x`", [Part("`partiscope alerts test x`")]),
        ("", []),
    ],
)  # fmt: skip
def test_a_command_with_a_view_is_a_link(text: str, parts: list[Part]) -> None:
    assert list(linked(text)) == parts


def _texts(tree: ast.AST) -> Iterator[str]:
    """Every text but docstrings; ``X`` stands for what is filled in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (it.value if isinstance(it, ast.Constant) else "X" for it in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield from _texts(node)


def test_no_refusal_of_a_form_asks_for_a_flag() -> None:
    files = [it for name in REFUSING for it in [CONTROL / name, *(CONTROL / name).rglob("*.py")]]
    told = {text for it in files if it.is_file() for text in _texts(ast.parse(it.read_text()))}
    flag = re.compile(r"[\s`]--[a-z]|topics describe")
    asking = {text for text in told for part in linked(text) if flag.search(part.words)}

    assert len(told) > 500
    assert {text for text in asking if "`partiscope up " not in text} == set()
