"""Cutting a proposal into waves: few partitions at a time, so that a move can be stopped early."""

from collections.abc import Sequence

from control.planner.proposal import PartitionChange


def plan_waves(
    changes: Sequence[PartitionChange], *, partitions_per_wave: int
) -> tuple[tuple[PartitionChange, ...], ...]:
    """Changes that move no data first, all at once; then small partitions before large ones.

    Deterministic, so a restarted executor cuts the same waves.

    :raises ValueError: a wave needs at least one partition.
    """
    if partitions_per_wave < 1:
        raise ValueError(f"a wave has at least one partition, not {partitions_per_wave}")
    free = tuple(change for change in changes if not change.adding)
    moving = sorted((c for c in changes if c.adding), key=lambda c: (c.moved_bytes, c.key))
    waves = [free] if free else []
    waves += [
        tuple(moving[start : start + partitions_per_wave])
        for start in range(0, len(moving), partitions_per_wave)
    ]
    return tuple(waves)
