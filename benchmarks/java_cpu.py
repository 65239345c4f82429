"""What a JVM's CPU goes into, by the names of its threads; nothing is attached to it.

Kafka's threads say what they are for. Those of the compiler tell how far a figure is one of a JVM
that still warms up, those of the collector whether its heap is too small for what it holds.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.processes import cpu_by_mode, cpu_seconds

KINDS: Final = {
    "C1 Comp": "compiler",
    "C2 Comp": "compiler",
    "G1": "collector",
    "GC": "collector",
    "VM Thread": "collector",
    "data-plane": "requests",
    "group-coord": "groups",
    "executor-": "groups",
    "ReplicaFetch": "replication",
}
"""Beginnings of thread names (the kernel keeps fifteen characters)."""
OTHER: Final = "other"
ALL: Final = "all"

Spent = Mapping[str, float]
"""CPU seconds by kind; ``ALL`` counts threads that have ended as well."""


def spent(pid: int) -> Spent:
    """User and system time of a process so far."""
    found: defaultdict[str, float] = defaultdict(float)
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name, seconds = _name(task / "stat"), sum(cpu_by_mode(task / "stat"))
        except OSError:  # it has ended meanwhile
            continue
        kind = next((kind for start, kind in KINDS.items() if name.startswith(start)), OTHER)
        found[kind] += seconds
    return {**found, ALL: cpu_seconds(pid)}


def percent_of_a_core(
    before: Sequence[Spent], after: Sequence[Spent], seconds: float
) -> list[dict[str, float]]:
    """Of each process, between two readings."""
    return [
        {kind: round(100 * (b[kind] - a.get(kind, 0.0)) / seconds, 1) for kind in sorted(b)}
        for a, b in zip(before, after, strict=True)
    ]


def _name(stat: Path) -> str:
    text = stat.read_text()
    return text[text.index("(") + 1 : text.rindex(")")]
