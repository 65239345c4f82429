"""CPU and memory of running processes, as the kernel tells them."""

import os
from pathlib import Path
from typing import Final

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
MB: Final = 1e6
MIB: Final = 1 << 20


def cpu_by_mode(stat: Path) -> tuple[float, float]:
    """User and system seconds so far, by the ``stat`` of a process or of one of its threads."""
    fields = stat.read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) / TICKS_PER_S, int(fields[12]) / TICKS_PER_S


def stat_of(process_id: int) -> Path:
    """Where the kernel tells of a process."""
    return Path(f"/proc/{process_id}/stat")


def cpu_seconds(process_id: int) -> float:
    """User and system time of a process so far."""
    return sum(cpu_by_mode(stat_of(process_id)))


def resident_bytes(process_id: int) -> int:
    """Memory of a process that is in RAM."""
    pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def resident_mb(process_id: int) -> float:
    """The same in megabytes."""
    return resident_bytes(process_id) / MB


def resident_mib(process_id: int) -> float:
    """The same in mebibytes."""
    return resident_bytes(process_id) / MIB
