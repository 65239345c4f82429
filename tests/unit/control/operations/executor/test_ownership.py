"""An executor proves right before each change that the operations are its own."""

import re
from pathlib import Path
from typing import Final

import control.operations.executor

CHANGES: Final = re.compile(r"\.(alter_\w+|elect_leaders)\($|\.(alter_\w+|elect_leaders)\(\S")
LINES_BETWEEN_MAX: Final = 2
"""Of a ``with`` or ``try`` around the change."""


def test_each_change_of_a_cluster_comes_right_after_the_proof() -> None:
    """Else one that was stopped in between sets again what the next owner has removed."""
    folder = Path(control.operations.executor.__file__).parent
    found = 0
    for path in sorted(folder.rglob("*.py")):
        lines = path.read_text("utf-8").splitlines()
        for number, line in enumerate(lines):
            if CHANGES.search(line) and "await" in line:
                found += 1
                before = lines[max(0, number - LINES_BETWEEN_MAX) : number]
                assert any("hold()" in it for it in before), f"{path.name}:{number + 1} {line}"
    assert found >= 7, "the rule no longer finds the changes"
