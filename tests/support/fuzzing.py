"""How long the fuzzers of `make soak` run, with which dice, and what no node may say meanwhile.

`PARTISCOPE_FUZZ_S` says for how long each of them runs, `PARTISCOPE_FUZZ_SEED` with which dice.
"""

import random
import re
from pathlib import Path
from typing import Final

from tests.support.isolation import MACHINE
from tests.support.mutations import mutated

FUZZ_S: Final = float(MACHINE.get("PARTISCOPE_FUZZ_S", "600"))
FUZZ_SEED: Final = int(MACHINE.get("PARTISCOPE_FUZZ_SEED", "1"))
FAULTS: Final = re.compile(
    r"^.*(?:Traceback|handler of API \d+|nternal error in|never retrieved).*$", re.MULTILINE
)
"""Of an error that nobody expected."""


def damage(dice: random.Random, directory: Path) -> tuple[str, Path]:
    """Changes a file below the directory: what was done to it, and which it was."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    victim = dice.choice(files)
    how = dice.choice(("changed", "changed", "changed", "removed", "emptied", "swapped", "blocked"))
    match how:
        case "changed":
            victim.write_bytes(mutated(dice, victim.read_bytes()))
        case "removed":
            victim.unlink()
        case "emptied":
            victim.write_bytes(b"")
        case "swapped":
            victim.write_bytes(dice.choice(files).read_bytes())
        case _:
            victim.unlink()
            victim.mkdir()
    return how, victim
