"""The rules about disks: log directories that failed, are cordoned, are full or fill up. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from broker.metrics_schema import LogDirSample
from control.model.columns import FloatColumn, floats, ints
from control.model.finding import Finding, Operation
from control.model.load import Placement
from control.model.log_dirs import FileSystem, file_systems
from control.model.snapshot import ClusterSnapshot
from control.model.status import Severity

DISK_WARNING_PERCENT: Final = 80.0
DISK_CRITICAL_PERCENT: Final = 90.0
DAY_MS: Final = 86_400_000.0
PEAK: Final = 2.0
"""The traffic of a day's busiest hours is about so many times its mean."""
SUSTAINED_S: Final = 600.0
"""A rate that a partition does not hold so many seconds of is a burst, and counts for less."""
_RELIEVE: Final = "Move partitions away or shorten retention"


def directories_of(row: Mapping[str, Any]) -> tuple[LogDirSample, ...]:
    """The log directories in a row of the store's ``brokers``, by path; empty: not told."""
    told = (LogDirSample(**it) for it in row["directories"] or ())
    return tuple(sorted(told, key=lambda it: it.path))


def disks_of(row: Mapping[str, Any]) -> tuple[FileSystem, ...]:
    """The file systems of a broker; one where its source does not tell directories."""
    directories = directories_of(row)
    if directories:
        return file_systems(directories)
    total, usable = row["disk_total_bytes"], row["disk_usable_bytes"]
    whole = LogDirSample(path="", total_bytes=total, usable_bytes=usable, replicas=1)
    return (FileSystem(directories=(whole,)),)


def fullest_percent(disks: Iterable[FileSystem]) -> float | None:
    """Used share of the fullest file system; None where one of them is not told."""
    used = [disk_used_percent(disk.total_bytes, disk.usable_bytes) for disk in disks]
    known = [it for it in used if it is not None]
    return max(known) if known and len(known) == len(used) else None


def room_bytes(disks: Sequence[FileSystem]) -> float | None:
    """Bytes by which a broker can grow until the first of its file systems is full; None where one
    is not told. Each grows as its number of replicas: which replica lies where is not kept."""
    held = [sum(it.replicas for it in disk.directories) for disk in disks]
    room = []
    for disk, replicas in zip(disks, held, strict=True):
        if disk.usable_bytes is None:
            return None
        if replicas or len(disks) == 1:
            room.append(disk.usable_bytes / (replicas / sum(held) if len(disks) > 1 else 1.0))
    return min(room, default=None)


def is_cordoned(directories: Sequence[LogDirSample]) -> bool:
    """Whether the broker works, and none of its directories takes new replicas."""
    return bool(directories) and all(it.is_cordoned and not it.is_failed for it in directories)


def disk_used_percent(total_bytes: int | None, usable_bytes: int | None) -> float | None:
    """Used share of a disk; None where the broker does not tell."""
    if total_bytes is None or usable_bytes is None or total_bytes <= 0:
        return None
    return (total_bytes - usable_bytes) / total_bytes * 100.0


def daily_growth(snapshot: ClusterSnapshot, placed: Placement) -> dict[int, float]:
    """Bytes by which the replicas of each broker grow within a day, as fast as now.

    Of a partition whose records are deleted by age, no more than until it holds what its topic
    keeps, at half of the present rate: now may be the busiest hour of the day. Compacted
    partitions do not count, and bursts only for what they would have left in ten minutes.
    """
    rates = floats(snapshot.partitions["in_bytes_per_s"])
    retention_s = floats(snapshot.partitions["retention_ms"]) / 1000.0
    held = np.nan_to_num(floats(snapshot.partitions["size_bytes"]))
    rates = np.minimum(rates, held / SUSTAINED_S)
    of_day = rates * DAY_MS / 1000.0
    with np.errstate(invalid="ignore"):
        kept = np.maximum(rates * retention_s / PEAK - held, 0.0)
        grows = np.where(retention_s < 0, of_day, np.minimum(of_day, kept))
    return _sums(snapshot, placed, np.nan_to_num(grows)[placed.row])


def _sums(
    snapshot: ClusterSnapshot, placed: Placement, each: FloatColumn | None = None
) -> dict[int, float]:
    """By broker what its replicas are in all; without ``each`` how many they are."""
    brokers = np.sort(ints(snapshot.brokers["broker"]))
    is_known = np.isin(placed.broker, brokers)
    place = np.searchsorted(brokers, placed.broker[is_known])
    weights = None if each is None else each[is_known]
    sums = np.bincount(place, weights=weights, minlength=len(brokers))
    return dict(zip(brokers.tolist(), sums.tolist(), strict=True))


def find_disks(snapshot: ClusterSnapshot, placed: Placement) -> Iterator[Finding]:
    """Every finding about disks of brokers."""
    growth, replicas = daily_growth(snapshot, placed), _sums(snapshot, placed)
    for row in snapshot.brokers.to_pylist():
        broker, directories, disks = row["broker"], directories_of(row), disks_of(row)
        for disk in disks:
            yield from _full(broker, disk, is_one_of_several=len(disks) > 1)
        if row["is_fenced"]:
            continue
        yield from _failed(broker, directories)
        yield from _cordoned(broker, directories, int(replicas[broker]))
        yield from _filling(broker, disks, growth[broker])


def _failed(broker: int, directories: Sequence[LogDirSample]) -> Iterator[Finding]:
    failed = [it.path for it in directories if it.is_failed]
    if not failed:
        return
    yield Finding(
        kind="log-dir-failed",
        severity=Severity.CRITICAL,
        subject=f"brokers/{broker}",
        label=f"broker {broker}",
        title="log directory {named} failed",
        reason="Its broker cannot use it: the replicas there are offline. The disk figures of the "
        "broker leave it out.",
        next_step="See the error in the broker's log, repair or replace the disk, then restart the "
        f"broker; or move its replicas away (`partiscope brokers drain {broker}`)",
        facts={"named": ", ".join(failed)},
    )


def _cordoned(broker: int, directories: Sequence[LogDirSample], replicas: int) -> Iterator[Finding]:
    """Log directories that take no new replicas."""
    cordoned = [it.path for it in directories if it.is_cordoned]
    if not cordoned:
        return
    is_whole = is_cordoned(directories)
    takes_none = all(it.is_cordoned or it.is_failed for it in directories)
    yield Finding(
        kind="cordoned",
        severity=Severity.NOTICE,
        subject=f"brokers/{broker}",
        label=f"broker {broker}",
        title="cordoned" if is_whole else "{cordoned} of {log_dirs} log directories cordoned",
        reason=_cordon_reason(is_whole, takes_none, is_empty=not replicas),
        next_step=_cordon_step(broker, is_empty=is_whole and not replicas),
        facts={
            "cordoned": len(cordoned),
            "log_dirs": len(directories),
            "named": ", ".join(cordoned),
            "replicas": replicas,
        },
    )


def _cordon_reason(is_whole: bool, takes_none: bool, *, is_empty: bool) -> str:
    if not is_whole:
        others = " The others failed, so Kafka refuses every reassignment that names the broker."
        return f"They receive no new replicas: {{named}}.{others if takes_none else ''}"
    if is_empty:
        return "It is empty and receives no replicas: its drain goes on, or it came back after it."
    return (
        "It receives no new replicas, and Kafka refuses every reassignment that names it; "
        "{replicas:plural:replica} stay there."
    )


def _cordon_step(broker: int, *, is_empty: bool) -> str:
    does = "Stop it, then unregister it" if is_empty else "Drain it"
    return (
        f"{does} (`partiscope brokers drain {broker}`), or `partiscope brokers uncordon {broker}`"
    )


def _full(broker: int, disk: FileSystem, *, is_one_of_several: bool) -> Iterator[Finding]:
    used = disk_used_percent(disk.total_bytes, disk.usable_bytes)
    if used is None or used < DISK_WARNING_PERCENT:
        return
    severity = Severity.CRITICAL if used >= DISK_CRITICAL_PERCENT else Severity.WARNING
    label, where = f"broker {broker}", ""
    if is_one_of_several:
        assumed = ", taken for one file system" if disk.is_assumed else ""
        label, where = f"{label} {disk.paths[0]}", f" on {' and '.join(disk.paths)}{assumed}"
    yield Finding(
        kind="log-dir-full" if is_one_of_several else "disk",
        severity=severity,
        subject=f"brokers/{broker}",
        label=label,
        title="disk {used:percent} full",
        reason="{usable:bytes} left of {total:bytes}{where}.",
        next_step=_RELIEVE,
        operation=Operation.REASSIGN,
        facts={
            "used": used,
            "usable": disk.usable_bytes,
            "total": disk.total_bytes,
            "where": where,
        },
    )


def _filling(broker: int, disks: Sequence[FileSystem], growth: float) -> Iterator[Finding]:
    """The first file system is full within a day; what is nearly full is told already."""
    room, used = room_bytes(disks), fullest_percent(disks)
    if room is None or used is None or used >= DISK_WARNING_PERCENT or room > growth:
        return
    shared = " Each directory is taken to grow as its number of replicas." if len(disks) > 1 else ""
    yield Finding(
        kind="disk-filling",
        severity=Severity.WARNING,
        subject=f"brokers/{broker}",
        label=f"broker {broker}",
        title="disk full in ≈ {full:duration}",
        reason="At the present rate, records come faster than retention deletes them; room is left "
        f"for {{room:bytes}}.{shared}",
        next_step=_RELIEVE,
        operation=Operation.REASSIGN,
        facts={"full": room / growth * DAY_MS if growth else 0.0, "room": room},
    )
