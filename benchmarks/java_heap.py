"""What a JVM holds once it has collected; its resident memory tells what it was allowed to take."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HEAP: Final = re.compile(
    r"^\s*(?:tenured generation|ParOldGen|garbage-first heap)\s.*?\bused (\d+)K", re.M
)
"""Where a collection puts what lives; the young generation holds what came since (of G1 both)."""
_METASPACE: Final = re.compile(r"^\s*Metaspace\s+used (\d+)K", re.M)
_CODE: Final = re.compile(r"\bused=(\d+)Kb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """MiB in use."""

    heap: float
    metaspace: float
    code: float

    def __str__(self) -> str:
        return (
            f"{self.heap:.1f} MiB of heap live, metaspace {self.metaspace:.1f}, "
            f"compiled code {self.code:.1f}"
        )


def held_after_collecting(pid: int) -> Held | None:
    """Have a JVM collect, and read what is left; None: it has ended, or comes without ``jcmd``."""
    jcmd = Path(f"/proc/{pid}/exe").resolve().with_name("jcmd")
    if not jcmd.exists():
        return None

    def ask(*words: str) -> str:
        asked = [str(jcmd), str(pid), *words]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout

    try:
        ask("GC.run")
        heap, code = ask("GC.heap_info"), ask("Compiler.codecache")
    except subprocess.CalledProcessError:
        return None
    return Held(heap=_mib(_HEAP, heap), metaspace=_mib(_METASPACE, heap), code=_mib(_CODE, code))


def _mib(pattern: re.Pattern[str], text: str) -> float:
    found = [int(size) for size in pattern.findall(text)]
    if not found:
        raise ValueError(f"jcmd says nothing of this kind:\n{text}")
    return sum(found) / 1024
