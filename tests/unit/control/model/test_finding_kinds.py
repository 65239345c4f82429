"""The table of kinds in docs/reference/definitions.md has every kind, and its severities."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from control.model.finding_rules import SKEW_MEASURES
from control.model.status import GROUP_SEVERITIES, PARTITION_SEVERITIES, Severity
from control.views.snapshots.alert_findings import FIRING_KIND
from control.views.snapshots.snapshot import STORE_KIND
from tests.support.node_cluster import ROOT

DOCUMENT: Final = ROOT / "docs" / "reference" / "definitions.md"
ROW: Final = re.compile(r"^\| ((?:`[\w-]+…?`(?:, )?)+) \| ([a-z, –]+) \| .+ \|$", re.MULTILINE)
NAMED: Final = {"FIRING_KIND": FIRING_KIND, "STORE_KIND": STORE_KIND}
PARTITIONS: Final = ("offline", "under-min-isr", "at-min-isr", "under-replicated", "not-preferred")
FILLED: Final = {
    "skew-": tuple(SKEW_MEASURES.values()),
    "group-": ("LOST", "BEYOND", "STALL", "STOP", "REWIND"),
    "right-missing-": ("…",),
}
"""What stands behind these words of a kind that the code puts together."""
BY_ARGUMENT: Final = {
    **{name: PARTITION_SEVERITIES[name] for name in PARTITIONS},
    **{f"group-{word}": GROUP_SEVERITIES[word] for word in FILLED["group-"]},
}
"""Severities that a table of the code tells."""


def _written() -> dict[str, set[str]]:
    section = DOCUMENT.read_text().split("\n## Findings\n")[1].split("\n## ")[0]
    return {
        kind: {it for it in told.split(", ") if it != "–"}
        for kinds, told in ROW.findall(section)
        for kind in re.findall(r"`(.+?)`", kinds)
    }


def _made() -> dict[str, set[str]]:
    """Kinds that the code makes, with the severities that it names beside them."""
    made: dict[str, set[str]] = {}
    for file in sorted((ROOT / "control").rglob("*.py")):
        for scope in ast.walk(ast.parse(file.read_text())):
            if not isinstance(scope, ast.FunctionDef):
                continue
            for call in _findings_of(scope):
                told = {it.arg: it.value for it in call.keywords if it.arg}
                kind = told.get("kind") or call.args[0]
                severity = told.get("severity") or call.args[1]
                names = {
                    it.attr
                    for it in ast.walk(scope if isinstance(severity, ast.Name) else severity)
                    if isinstance(it, ast.Attribute) and it.attr in Severity.__members__
                }
                for name in _names(kind):
                    known = BY_ARGUMENT.get(name)
                    these = {known.name} if known is not None else names
                    made.setdefault(name, set()).update(it.lower() for it in these if it != "FINE")
    return made


def _findings_of(scope: ast.FunctionDef) -> Iterator[ast.Call]:
    for call in ast.walk(scope):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            is_passed_on = scope.name == "_finding"
            if call.func.id in ("Finding", "_finding") and not is_passed_on:
                yield call


def _names(kind: ast.expr) -> Iterator[str]:
    if isinstance(kind, ast.IfExp):
        yield from _names(kind.body)
        yield from _names(kind.orelse)
    elif isinstance(kind, ast.JoinedStr):
        (begin, _) = kind.values
        assert isinstance(begin, ast.Constant)
        word = str(begin.value)
        yield from (word + it for it in FILLED[word])
    elif isinstance(kind, ast.Constant):
        yield str(kind.value)
    else:
        assert isinstance(kind, ast.Name)
        yield from PARTITIONS if kind.id == "word" else (NAMED[kind.id],)


def test_the_table_of_kinds_has_each_that_the_code_makes_with_its_severities() -> None:
    assert _written() == _made()
    assert len(_written()) > 40
