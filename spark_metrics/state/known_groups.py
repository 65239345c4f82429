"""The groups that the job knows of, pure: whether or not they ever committed.

Groups are hundreds to thousands, commits up to millions: the driver keeps the list of groups
itself, and buckets hold the commits.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

SILENT_MS_MAX: Final = 600_000
"""Commits and groups of a coordinator that fell silent go when the cluster is so much later."""

GroupKey = tuple[str, str]
"""Cluster and group id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredGroup:
    """A group as its coordinator last reported it."""

    cluster: str
    group_id: str
    source: int
    """Broker id of the coordinator."""
    round_ms: int
    state: str
    protocol: str
    members: int
    read_ms: int
    group_type: str = ""
    group_epoch: int | None = None
    assignment_epoch: int | None = None


def merge_groups(
    known: Iterable[RegisteredGroup],
    rows: Iterable[RegisteredGroup],
    complete_ms: Mapping[tuple[str, int], int],
    silent: Container[tuple[str, int]] = (),
) -> list[RegisteredGroup]:
    """The newest row of each group, without those that are gone.

    ``complete_ms``: begin of each source's newest complete round; a group that was not in it is
    gone. ``silent``: sources that fell silent too long ago.
    """
    merged: dict[GroupKey, RegisteredGroup] = {}
    for group in (*known, *rows):
        before = merged.get((group.cluster, group.group_id))
        if before is None or group.read_ms >= before.read_ms:
            merged[group.cluster, group.group_id] = group
    return [
        group
        for _, group in sorted(merged.items())
        if group.round_ms >= complete_ms.get((group.cluster, group.source), 0)
        and (group.cluster, group.source) not in silent
    ]
