"""Histories as a source tells of them, folded by the job: its figures second by second."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from broker.metrics_schema import BrokerSample, CommitSample, GroupSample, ReplicaSample, Row
from tests.oracle.figures.retained import RECORD_BYTES, History, Log
from tests.support.folded_rounds import FoldedRounds

T0_MS: Final = 1_800_000_000_000
SILENT_EACH: Final = 17
DOUBLE_EACH: Final = 5
LATE_EACH: Final = 7
AWAY_EACH: Final = 23
"""At each so manieth reading the source says nothing, all twice, or the reading before once more;
or the job is away, and starts again before the next one."""
Figures = dict[str, Any]


def watched(
    of: Sequence[History], *, begins_s: int, ends_s: int, every_s: int
) -> Iterator[tuple[int, list[Figures]]]:
    """Seconds at which all is read, and the job's figures of each group then."""
    rounds = FoldedRounds()
    before: tuple[int, list[Row]] | None = None
    for second in range(1, ends_s):
        for it in of:
            it.step(second)
        if second < begins_s or second % every_s:
            continue
        step, at_ms = second // every_s, T0_MS + 1_000 * second
        if step % SILENT_EACH == 0:
            continue
        rows = list(_rows(of, second))
        rounds.round(1, at_ms, *rows)
        if step % DOUBLE_EACH == 0:
            rounds.round(1, at_ms, *rows)
        if before is not None and step % LATE_EACH == 0:
            rounds.round(1, before[0], *before[1])
        before = at_ms, rows
        if step % AWAY_EACH == 0:
            rounds.restart(at_ms)
            continue
        commits = rounds.batch(at_ms).state.commits
        found = sorted(commits.to_pylist(), key=lambda row: row["partition"])
        for it, row in zip(of, found, strict=True):
            row["committed_offset"] -= it.log.first_offset
        yield second, found


def log_points(log: Log) -> list[int] | None:
    """Offsets and times of records by turns, as sources look them up now and then."""
    if log.end == log.start:
        return None
    offsets = sorted({log.start + (log.end - log.start) * step // 8 for step in range(9)})
    return [it for at in offsets for it in (log.first_offset + at, T0_MS + 1_000 * log.ended_s(at))]


def broker_row(at_ms: int) -> Row:
    return BrokerSample(id=1, host="h", port=1, fenced=False, read_ms=at_ms)


def partition_rows(
    number: int, at_ms: int, *, offset: int, committed_s: int, member: str | None, **log: Any
) -> Iterator[Row]:
    """A partition of the one broker, and the group that reads it; ``log``: of ``ReplicaSample``."""
    group = f"g{number}"
    yield GroupSample(group_id=group, state="Stable", members=1, read_ms=at_ms)
    yield CommitSample(
        group_id=group,
        topic="t",
        partition=number,
        committed_offset=offset,
        read_ms=at_ms,
        commit_ms=T0_MS + 1_000 * committed_s,
        member_id=member,
    )
    yield ReplicaSample(
        topic="t",
        partition=number,
        leader=1,
        leader_epoch=1,
        replicas=(1,),
        isr=(1,),
        log_end_offset=log["high_watermark"],
        read_ms=at_ms,
        **log,
    )


def _rows(of: Sequence[History], second: int) -> Iterator[Row]:
    at_ms = T0_MS + 1_000 * second
    yield broker_row(at_ms)
    for number, it in enumerate(of):
        log, reader = it.log, it.reader
        bases = [log.first_offset + it for it in log.bases[log.first :]]
        yield from partition_rows(
            number,
            at_ms,
            offset=log.first_offset + reader.offset,
            committed_s=reader.committed_s,
            member="m",
            log_start_offset=log.first_offset + log.start,
            high_watermark=log.first_offset + log.end,
            size_bytes=RECORD_BYTES * (log.end - log.start),
            segments=len(bases),
            segment_offsets=bases[-16:] if log.tells_segments else None,
            segment_bytes=[RECORD_BYTES] * len(bases[-16:]) if log.tells_segments else None,
            retention_ms=1_000 * log.kept_s if log.kept_s else -1,
            retention_bytes=RECORD_BYTES * log.kept_records if log.kept_records else -1,
            log_points=log_points(log) if second % 60 < 30 else None,
        )
