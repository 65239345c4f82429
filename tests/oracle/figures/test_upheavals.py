"""Lag, lost records, speeds and verdicts through upheavals, beside what is true.

A source tells of one moment and of another a little later, late, twice, or by a clock that is off.
So a figure is right that follows from the truth of the last ``SPAN_S`` seconds.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple

import pytest

from broker.metrics_schema import BrokerSample, CommitSample, GroupSample, ReplicaSample, Row
from tests.oracle.figures.upheavals import (
    BROKERS,
    ENDS_S,
    KINDS,
    Partition,
    Source,
    absences,
    clusters,
    partitions,
    sources,
)
from tests.oracle.seeds import AT_ONCE, long_run
from tests.support.folded_rounds import FoldedRounds

T0_MS: Final = 1_800_000_000_000
COUNT: Final = 60
EVERY_S: Final = 2
SPAN_S: Final = 9
SETTLED_S: Final = 13
GONE_S: Final = 20
REWIND_S: Final = 60
Figures = dict[str, Any]


def told(of: list[Partition], source: Source, at_ms: int) -> Iterator[Row]:
    """What this source tells by its own clock."""
    for broker in BROKERS:
        yield BrokerSample(id=broker, host="h", port=1, fenced=False, read_ms=at_ms)
    for it in of:
        if it.cluster != source.cluster or it.exists_s is None:
            continue
        name = f"t{it.number}"
        if it.number % 2 + 1 == source.broker:
            yield GroupSample(group_id=name, state="Stable", members=1, read_ms=at_ms)
            yield CommitSample(
                group_id=name, topic=name, partition=0, committed_offset=it.offset,
                read_ms=at_ms, commit_ms=at_ms, member_id="m",
            )  # fmt: skip
        yield ReplicaSample(
            topic=name, partition=0, leader=it.leader, leader_epoch=it.leader_epoch,
            replicas=BROKERS, isr=BROKERS, log_start_offset=it.start, high_watermark=it.end,
            log_end_offset=it.end, read_ms=at_ms + 1,
        )  # fmt: skip


class Sent(NamedTuple):
    """A round, as a source sends it."""

    source: Source
    round_ms: int
    rows: list[Row]
    sent_ms: int
    broker_epoch: int

    def tell(self, rounds: FoldedRounds) -> None:
        rounds.round(
            self.source.broker, self.round_ms, *self.rows, cluster=self.source.cluster,
            sent_ms=self.sent_ms, broker_epoch=self.broker_epoch,
        )  # fmt: skip


def sent_by(source: Source, dice: Random, second: int, of: list[Partition]) -> list[Sent]:
    """What this source sends in a second, now and then twice, or once more what it sent before."""
    if source.is_silent(second):
        return []
    at_ms = T0_MS + 1_000 * (second + source.clock_s)
    is_again = source.starts_again_s is not None and second >= source.starts_again_s
    now = Sent(source, at_ms, list(told(of, source, at_ms)), at_ms, 2 if is_again else 1)
    sent = [now] * (2 if dice.random() < 0.1 else 1)
    if source.late is not None and dice.random() < 0.1:
        sent.append(source.late._replace(sent_ms=at_ms, broker_epoch=now.broker_epoch))
    source.late = now
    return sent


Told = tuple[int, list[Source], list[Partition], list[Sent]]


def sent(dice: Random, count: int) -> Iterator[Told]:
    """Each second: who tells, the truth, and what is sent."""
    of, tellers = partitions(dice, count), sources(dice, count)
    for second in range(ENDS_S):
        for it in of:
            it.step(second)
        if second % EVERY_S == 0:
            yield (
                second,
                tellers,
                of,
                [each for it in tellers for each in sent_by(it, dice, second, of)],
            )


def figures_of(rounds: FoldedRounds, second: int) -> dict[str, dict[tuple[str, str], Figures]]:
    """What the job knows after a batch, by cluster and topic."""
    state = rounds.batch(T0_MS + 1_000 * second + 400).state
    return {
        name: {(row["cluster"], row["topic"]): row for row in table.to_pylist()}
        for name, table in (("commits", state.commits), ("partitions", state.partitions))
    }


def watched(dice: Random, count: int) -> Iterator[tuple[int, list[Source], list[Partition], Any]]:
    """Each second: who tells, the truth, and the job's figures, while the job is there."""
    rounds, away = FoldedRounds(), absences(dice)
    for second, tellers, of, told_now in sent(dice, count):
        for it in told_now:
            it.tell(rounds)
        if any(second in it for it in away):
            continue
        while away and second >= away[0].stop:
            rounds.restart(T0_MS + 1_000 * second)
            del away[0]
        yield second, tellers, of, figures_of(rounds, second)


def complaints(seed: int, count: int) -> list[str]:
    """Every figure that does not follow from the truth."""
    found = []
    for second, tellers, of, figures in watched(Random(seed), count):
        for it in of:
            key = it.cluster, f"t{it.number}"
            commit = figures["commits"].get(key)
            log = figures["partitions"].get(key)
            lately = [s for s in tellers if s.cluster == it.cluster]
            is_heard = not any(
                s.is_unsure(at) for s in lately for at in range(second - SPAN_S, second + 1)
            )
            found += [
                f"seed {seed} {second} s {key} {it.kind} at {it.at_s} s, base {it.base}, "
                f"clocks {[s.clock_s for s in lately]}: {wrong}"
                for wrong in _wrong(it, second, commit, log, is_heard=is_heard)
            ]
    return found


def _wrong(
    it: Partition, second: int, commit: Figures | None, log: Figures | None, *, is_heard: bool
) -> Iterator[str]:
    if not is_heard:
        return
    since_s = second - (it.exists_s if it.exists_s is not None else second)
    if it.exists_s is None:
        is_gone = it.kind == "added" or second < it.at_s + GONE_S
        if not is_gone and (commit or log):
            yield f"still there: {commit}"
        return
    if since_s < SETTLED_S:
        return
    if commit is None or log is None:
        yield f"lacks: commit {commit is not None}, log {log is not None}"
        return
    truth = it.lately(second, SPAN_S)
    ends, offsets = [each.end for each in truth], [each.offset for each in truth]
    is_beyond = any(each.offset > each.end for each in truth)
    lag = commit["lag"]
    least, most = max(0, min(ends) - max(offsets)), max(0, max(ends) - min(offsets))
    if not is_beyond and (lag is None or not least <= lag <= most):
        yield f"lag {lag}, in truth {least} to {most}"
    if not min(offsets) <= commit["committed_offset"] <= max(offsets):
        yield f"committed {commit['committed_offset']}, in truth {offsets}"
    starts = [each.start for each in truth]
    lost = commit["lost_records"]
    lost_most = max(0, max(starts) - min(offsets))
    if not is_beyond and (lost is None or not 0 <= lost <= lost_most):
        yield f"lost {lost}, in truth at most {lost_most}"
    yield from _wrong_speeds(it, second, commit, log)
    is_behind = all(each.end > each.offset for each in truth)
    yield from _wrong_verdict(it, second, commit["status"], is_behind=is_behind)


def _wrong_speeds(it: Partition, second: int, commit: Figures, log: Figures) -> Iterator[str]:
    rate = log["in_records_per_s"]
    if rate is not None and not -0.01 <= rate <= 1.5 * it.rate + 1:
        yield f"records in {rate}, in truth {it.rate}"
    is_quiet = second >= it.at_s + SETTLED_S or second < it.at_s
    if is_quiet and it.kind != "idle" and (rate is None or not rate >= 0.6 * it.rate - 1):
        yield f"records in {rate}, in truth {it.rate}"
    consumed = commit["consumed_records_per_s"]
    if consumed is not None and consumed < 0:
        yield f"consumes {consumed}"


def _wrong_verdict(it: Partition, second: int, status: str, *, is_behind: bool) -> Iterator[str]:
    since_s = second - it.at_s
    if it.kind == "beyond the end" and since_s > SPAN_S + 3 and status != "BEYOND":
        yield f"{status}, beyond the end"
    rewind_s = {"rewind": REWIND_S, "cut off": 0}.get(it.kind, -SPAN_S - 1)
    if status == "REWIND" and not 0 <= since_s <= rewind_s + SPAN_S:
        yield "REWIND of one that did not go back"
    if status in ("STOP", "STALL") and it.kind != "stops":
        yield f"{status} of one that works"
    if status == "BEYOND" and it.kind not in ("beyond the end", "cut off"):
        yield "BEYOND of one that is within"
    if status == "OK" and it.kind == "stops" and since_s > REWIND_S + 2 * SPAN_S and is_behind:
        yield "OK of one that stopped"


@pytest.mark.parametrize("seed", [1])
def test_figures_follow_from_the_truth_through_upheavals(seed: int) -> None:
    assert complaints(seed, COUNT)[:6] == []


@pytest.mark.soak
@pytest.mark.parametrize("seeds", long_run(COUNT, 6_700, AT_ONCE))
def test_figures_follow_from_the_truth_over_many_upheavals(seeds: range) -> None:
    assert complaints(seeds.start, len(seeds))[:6] == []


def all_figures(
    recorded: Sequence[tuple[int, list[Sent]]], *, of: str = "", restarts: bool = False
) -> dict[tuple[int, str, tuple[str, str]], Figures]:
    """Figures and memory by second, table and key. ``of``: the one cluster that is told of."""
    rounds = FoldedRounds()
    found: dict[tuple[int, str, tuple[str, str]], Figures] = {}
    for second, each in recorded:
        for it in each:
            if it.source.cluster.startswith(of):
                it.tell(rounds)
        for name, rows in figures_of(rounds, second).items():
            found |= {(second, name, key): row for key, row in rows.items()}
        if restarts:
            rounds.restart(T0_MS + 1_000 * second)
    return found


@pytest.mark.thorough
def test_clusters_of_one_job_do_not_touch_each_other_nor_does_a_restart_touch_figures() -> None:
    recorded = [(second, each) for second, _, _, each in sent(Random(2), 2 * len(KINDS))]
    together = all_figures(recorded)
    alone = [all_figures(recorded, of=name) for name in clusters(2 * len(KINDS))]
    assert {key: row for each in alone for key, row in each.items()} == together
    assert all_figures(recorded, restarts=True) == together
