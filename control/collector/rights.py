"""Finds which rights a principal lacks on the watched cluster.

Gaps are found where the collector asks anyway: an answer with a refusal opens one, the next
answer without closes it, so rights that come or go while running are noticed.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from control.kafka.acl import AclOperation, Lacking

NAMES_MAX: Final = 5
"""So many hidden topics or groups are named in a gap's detail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right on a resource, the API that needs it, and the feature that lacks without it."""

    api: str
    operation: AclOperation
    resource: str
    """``cluster``, ``topic`` or ``group``."""
    feature: str

    @property
    def rights(self) -> Lacking:
        """As what a command grants."""
        return ((self.operation, self.resource),)


class Gap(Enum):
    """Rights that watching can lack."""

    LOG_DIRS = Right(
        api="DescribeLogDirs",
        operation=AclOperation.DESCRIBE,
        resource="cluster",
        feature="sizes, disks, bytes in",
    )
    REASSIGNMENTS = Right(
        api="ListPartitionReassignments",
        operation=AclOperation.DESCRIBE,
        resource="cluster",
        feature="running reassignments",
    )
    CONTROLLER = Right(
        api="DescribeQuorum",
        operation=AclOperation.DESCRIBE,
        resource="cluster",
        feature="which broker is the controller",
    )
    TOPICS = Right(
        api="Metadata",
        operation=AclOperation.DESCRIBE,
        resource="topic",
        feature="topics that are hidden from us, and their groups' lag",
    )
    GROUPS = Right(
        api="OffsetFetch",
        operation=AclOperation.DESCRIBE,
        resource="group",
        feature="offsets, lag and members of groups",
    )
    TOPIC_CONFIGS = Right(
        api="DescribeConfigs",
        operation=AclOperation.DESCRIBE_CONFIGS,
        resource="topic",
        feature="min.insync.replicas, and when lag is lost to retention",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGap:
    """A right that is missing, since when, and where it was seen."""

    gap: Gap
    since_ms: int
    detail: str = ""

    @property
    def text(self) -> str:
        """One line for a person."""
        right = self.gap.value
        what = f"no right to {right.operation.name} the {right.resource} ({right.api})"
        detail = f": {self.detail}" if self.detail else ""
        return f"{what}{detail}; without it: {right.feature}"


class Gaps:
    """The rights that are missing now."""

    def __init__(self, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._now_ms = now_ms
        self._open: dict[Gap, OpenGap] = {}

    def open(self, gap: Gap, detail: str = "") -> None:
        """The right is missing."""
        known = self._open.get(gap)
        since_ms = self._now_ms() if known is None else known.since_ms
        self._open[gap] = OpenGap(gap=gap, since_ms=since_ms, detail=detail)

    def close(self, gap: Gap) -> None:
        """The right is there."""
        self._open.pop(gap, None)

    def judge(self, gap: Gap, missing: Iterable[str], what: str) -> None:
        """Open with the names that are hidden from us, or close where none is."""
        names = sorted(missing)
        if not names:
            self.close(gap)
            return
        more = "" if len(names) <= NAMES_MAX else f" and {len(names) - NAMES_MAX} more"
        self.open(gap, f"{len(names)} {what} ({', '.join(names[:NAMES_MAX])}{more})")

    def all(self) -> tuple[OpenGap, ...]:
        """Missing rights, in the order of ``Gap``."""
        return tuple(self._open[gap] for gap in Gap if gap in self._open)

    @property
    def is_partial(self) -> bool:
        """Whether topics or groups may exist that are not shown at all.

        Without Describe on the cluster neither log directories nor the list of groups are
        complete, so nobody can tell what is hidden.
        """
        return not self._open.keys().isdisjoint((Gap.LOG_DIRS, Gap.TOPICS, Gap.GROUPS))
