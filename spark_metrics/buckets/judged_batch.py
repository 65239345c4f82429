"""The heads of a batch, judged: clocks, rounds, groups, and the steps to fold it in. Pure.

The driver judges all records of a batch, a task those of its bucket. What concerns every bucket
(clocks, brokers, groups) is told by records that every task gets, so all judge it alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spark_metrics.decode.record_head import (
    Head,
    cut_steps,
    observed,
    seen_of,
    set_right,
    without_taken,
)
from spark_metrics.fold.bucket import Around
from spark_metrics.fold.new_points import Clocks
from spark_metrics.state.job_state import JobState
from spark_metrics.state.known_groups import RegisteredGroup, merge_groups
from spark_metrics.state.source_clocks import compare_clocks

REACHED_SHARE: Final = 0.9
"""A batch of fewer of the records that it may have has read the topic to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBefore:
    """The job's knowledge before a batch, and when that began."""

    memory: JobState
    groups: Sequence[RegisteredGroup]
    alive: Mapping[tuple[str, str], int]
    """When each group (by cluster and id) committed anything last."""
    at_ms: int
    """The job's time when records are judged: ``memory.clock`` is that when the batch began."""
    records_max: int
    compares_clocks: bool = True
    """Whether the records came as they were written, and tell how far clocks are off."""

    def later(self, by_ms: int) -> "StateBefore":
        """The same where records are judged so much later."""
        return replace(self, at_ms=self.at_ms + by_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStep:
    """Records of at most one round of each source, and what else the fold is told then."""

    records: list[tuple[int, Head]]
    """The step's records with their numbers in the batch."""
    around: Around


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A batch after a look at its heads."""

    heads: list[Head]
    """Heads that no earlier batch has taken in, by the job's clock."""
    steps: list[BatchStep]
    memory: JobState
    """The state after the batch."""
    groups: list[RegisteredGroup]


def judge(before: StateBefore, read: Sequence[Head]) -> Judged:
    """Judge the heads, one round of every source after the other."""
    heads = without_taken(read, before.memory)
    memory, heads = _set_right(before, heads)
    at_ms = before.at_ms + _set_by(before.memory, memory)
    cut = cut_steps(heads)
    groups, steps = list(before.groups), []
    for number, records in enumerate(cut):
        step_heads = [head for _, head in records]
        offsets_of = heads if number == len(cut) - 1 else ()
        earlier = memory
        memory = memory.observe(observed(step_heads, offsets_of=offsets_of, at_ms=at_ms))
        groups = merge_groups(
            groups,
            [group for head in step_heads for group in head.groups],
            memory.complete_rounds(),
            memory.silent_sources(),
        )
        around = Around(
            brokers=memory.known_brokers(),
            alive=before.alive,
            clocks=clocks_of(earlier, memory),
        )
        steps.append(BatchStep(records=records, around=around))
    return Judged(heads=heads, steps=steps, memory=memory.with_watermark(), groups=groups)


def clocks_of(before: JobState, after: JobState) -> Clocks:
    """Begin of each cluster's newest round, before and after."""
    return Clocks(before_ms=before.newest_rounds(), now_ms=after.newest_rounds())


def _set_by(before: JobState, after: JobState) -> int:
    """Milliseconds by which a batch has set the job's own clock."""
    was, now = before.clock, after.clock
    return 0 if was is None or now is None else now.now_ms - was.now_ms


def _set_right(before: StateBefore, heads: list[Head]) -> tuple[JobState, list[Head]]:
    """The memory with what this batch says of clocks, and the samples by the job's own.

    Only records that concern every bucket tell of clocks: every task has those.
    """
    memory = before.memory
    kept = {key: it for key, it in memory.clocks.items() if key in memory.sources}
    if not before.compares_clocks:
        return memory, set_right(heads, kept)
    assert memory.clock is not None, "the batch has begun"
    clock, clocks = compare_clocks(
        memory.clock,
        kept,
        seen_of(head for head in heads if head.bucket_of is None),
        reached_ms=memory.reached_ms,
    )
    after = replace(memory, clock=clock, clocks=clocks)
    reached_ms = memory.reached_ms
    if len(heads) < REACHED_SHARE * before.records_max:
        reached_ms = clock.now_ms
    elif reached_ms is not None:
        reached_ms += _set_by(memory, after)
    return replace(after, reached_ms=reached_ms), set_right(heads, clocks)
