"""A cluster's history with known answers: six minutes of everything that can go wrong.

Every behaviour has a topic and a group of the same name. A step is five seconds; each step is one
batch, and what the store says after it is compared with what is true.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from broker.metrics_schema import Row
from tests.spark.story import T0_MS, Story, broker, commit, group, replica

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(240),
    # pyspark leaves the sockets, over which it collects Arrow, to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
STEP_S: Final = 5
STEPS: Final = 40
MOVE_S: Final = 100
"""The leader of ``steady`` moves from 101 to 102."""
LOSS_S: Final = 120
"""Broker 103 dies."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """One partition of one group at one moment."""

    end: int
    committed: int
    commit_s: float
    start: int = 0
    is_owned: bool = True


def steady(t: int) -> Told:
    return Told(end=1_000 + 100 * t, committed=950 + 100 * t, commit_s=t)


def burst(t: int) -> Told:
    end = 1_000 + (6_000 if t >= 60 else 0)
    return Told(end=end, committed=min(end, 1_000 + 200 * max(0, t - 60)), commit_s=t)


def stuck(t: int) -> Told:
    return Told(end=1_000 + 100 * t, committed=1_000, commit_s=t)


def rewinding(t: int) -> Told:
    return Told(end=10_000, committed=5_000 + 100 * (t % 20), commit_s=t)


def slow(t: int) -> Told:
    """Lives, but commits only every half minute."""
    last = t // 30 * 30
    return Told(end=1_000 + 100 * t, committed=900 + 100 * last, commit_s=last)


def stopped(t: int) -> Told:
    last = min(t, 60)
    return Told(end=1_000 + 100 * t, committed=1_000 + 100 * last, commit_s=last, is_owned=t <= 60)


def hung(t: int) -> Told:
    """As stopped, but its member still owns the partition."""
    last = min(t, 60)
    return Told(end=1_000 + 100 * t, committed=1_000 + 100 * last, commit_s=last)


def idle(t: int) -> Told:
    return Told(end=700, committed=700, commit_s=0)


def behind(t: int) -> Told:
    return Told(end=1_000 + 100 * t, committed=1_000 + 60 * t, commit_s=t)


def overtaken(t: int) -> Told:
    """Stands at 6,000 while retention keeps the newest 20,000 records, 50 of which are written a
    second."""
    return Told(end=20_000 + 50 * t, committed=6_000, commit_s=t, start=50 * t)


SINGLE: Final[dict[str, Callable[[int], Told]]] = {
    told.__name__: told
    for told in (steady, burst, stuck, rewinding, slow, stopped, hung, idle, behind, overtaken)
}
MANY: Final = 6
"""Partitions of ``one-stuck`` (number 3 is) and of ``turns`` (worked through one by one)."""


def one_stuck(partition: int, t: int) -> Told:
    return stuck(t) if partition == 3 else steady(t)


def turns(partition: int, t: int) -> Told:
    """One member reads a partition for 20 s, then the next: two minutes from turn to turn."""
    cycle = MANY * 20
    begun = t - (t - 20 * partition) % cycle
    last = t if t - begun < 20 else begun + 20
    last = max(0, last)
    return Told(end=1_000 + 100 * t, committed=900 + 100 * last, commit_s=last)


def everything(t: int) -> dict[tuple[str, int], Told]:
    found = {(name, 0): told(t) for name, told in SINGLE.items()}
    for partition in range(MANY):
        found["one-stuck", partition] = one_stuck(partition, t)
        found["turns", partition] = turns(partition, t)
    return found


def tell(story: Story, t: int) -> None:
    """The rounds of one step: the coordinator (101) first, then the leaders."""
    at_ms = 1_000 * t
    alive = [101, 102] + ([103] if t < LOSS_S else [])
    brokers = [broker(at_ms, it, fenced=it not in alive) for it in (101, 102, 103, 104)]
    rows: dict[int, list[Row]] = {it: [*brokers] for it in alive}
    for (name, partition), told in everything(t).items():
        rows[101].append(
            commit(
                at_ms,
                told.committed,
                group_id=name,
                topic=name,
                partition=partition,
                commit_ms=T0_MS + int(1_000 * told.commit_s),
                member_id="m" if told.is_owned else None,
            )
        )
        has_moved = name == "steady" and t >= MOVE_S
        leads = {"leader": 102, "leader_epoch": 2} if has_moved else {}
        further: dict[str, Any] = {"topic": name, "partition": partition, **leads}
        end = replica(at_ms + 1, told.end, log_start_offset=told.start, **further)
        rows[102 if has_moved else 101].append(end)
    rows[101] += [group(at_ms, group_id=name) for name in ("never", *GROUPS)]
    if 103 in alive:
        alone = {"leader": 103, "replicas": (103,), "isr": (103,)}
        rows[103].append(replica(at_ms + 1, 10 * t, topic="alone", **alone))
    for it in alive:
        story.round(it, at_ms, *rows[it])


GROUPS: Final = (*SINGLE, "one-stuck", "turns")


@pytest.fixture(scope="module")
def history(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, dict[str, Any]]:
    """What the store said after each step, by seconds."""
    story = Story(session=spark, store=tmp_path_factory.mktemp("truth"))
    found = {}
    for step in range(STEPS):
        tell(story, t := step * STEP_S)
        now = story.batch()
        found[t] = {
            "commits": {(row["topic"], row["partition"]): row for row in now["commits"]},
            "groups": {row["group_id"]: row for row in now["groups"]},
            "partitions": {(row["topic"], row["partition"]): row for row in now["partitions"]},
            "brokers": {row["broker"]: row for row in now["brokers"]},
        }
    return found


def statuses(history: dict[int, dict[str, Any]], name: str, since_s: int = 0) -> list[str]:
    return [now["commits"][name, 0]["status"] for t, now in history.items() if t >= since_s]


def test_lag_is_what_it_is_at_every_step(history: dict[int, dict[str, Any]]) -> None:
    for t, now in history.items():
        for key, told in everything(t).items():
            row = now["commits"][key]
            assert row["lag"] == max(0, told.end - told.committed), (t, key)
            assert row["lost_records"] == max(0, told.start - told.committed), (t, key)
            assert row["end_read_ms"] >= row["read_ms"], (t, key)


def test_steady_is_ok_and_half_a_second_behind(history: dict[int, dict[str, Any]]) -> None:
    assert set(statuses(history, "steady", STEP_S)) == {"OK"}
    for t, now in history.items():
        row = now["commits"]["steady", 0]
        if t >= STEP_S:
            assert row["time_lag_ms"] == pytest.approx(500, abs=2), t
        if t >= 2 * STEP_S:
            assert row["consumed_records_per_s"] == pytest.approx(100.0), t


def test_a_burst_clears_at_the_speed_it_is_read(history: dict[int, dict[str, Any]]) -> None:
    assert set(statuses(history, "burst", 70)) == {"OK"}
    row = history[75]["commits"]["burst", 0]
    assert row["lag"] == 3_000
    assert row["time_to_clear_ms"] == pytest.approx(15_000, rel=0.5)
    assert history[95]["commits"]["burst", 0]["lag"] == 0
    assert history[95]["commits"]["burst", 0]["time_to_clear_ms"] == 0


def test_stuck_and_alive_is_stall(history: dict[int, dict[str, Any]]) -> None:
    assert set(statuses(history, "stuck", 25)) == {"STALL"}
    row = history[100]["commits"]["stuck", 0]
    assert row["time_lag_ms"] == pytest.approx(100_000, rel=0.05)
    assert row["history_ms"] == 100_000
    assert row["time_to_clear_ms"] is None


def test_one_reading_of_lag_is_no_verdict_yet(history: dict[int, dict[str, Any]]) -> None:
    first, second = history[0], history[STEP_S]
    for (name, _), row in first["commits"].items():
        assert row["status"] == ("OK" if row["lag"] == 0 else None), name
    assert first["groups"]["steady"]["status"] is None
    assert first["groups"]["idle"]["status"] == "OK"
    assert second["groups"]["steady"]["status"] == "OK"
    assert second["commits"]["steady", 0]["history_ms"] == 1_000 * STEP_S


def test_one_stuck_partition_is_named_among_many(history: dict[int, dict[str, Any]]) -> None:
    now = history[60]
    words = [now["commits"]["one-stuck", partition]["status"] for partition in range(MANY)]
    assert words == ["OK", "OK", "OK", "STALL", "OK", "OK"]
    assert now["groups"]["one-stuck"]["status"] == "STALL"
    assert now["groups"]["one-stuck"]["time_to_clear_ms"] is None, "one never clears"
    assert now["groups"]["one-stuck"]["lag"] == 5 * 50 + 6_000


def test_going_back_is_rewind(history: dict[int, dict[str, Any]]) -> None:
    assert set(statuses(history, "rewinding", 25)) <= {"REWIND", "OK"}
    assert history[40]["commits"]["rewinding", 0]["status"] == "REWIND"
    assert history[45]["commits"]["rewinding", 0]["consumed_records_per_s"] is None or (
        history[45]["commits"]["rewinding", 0]["consumed_records_per_s"] >= 0
    )


def test_a_slow_committer_is_not_stopped(history: dict[int, dict[str, Any]]) -> None:
    assert set(statuses(history, "slow", STEP_S)) <= {"OK", "WARN"}


def test_a_member_that_works_in_turns_is_not_stopped(history: dict[int, dict[str, Any]]) -> None:
    words = {
        now["commits"]["turns", partition]["status"]
        for t, now in history.items()
        for partition in range(MANY)
        if t >= STEP_S
    }
    assert words <= {"OK", "WARN"}


def test_stopped_is_stop(history: dict[int, dict[str, Any]]) -> None:
    assert set(statuses(history, "stopped", 85)) == {"STOP"}
    assert set(statuses(history, "hung", 130)) == {"STOP"}
    before = {t: now["commits"]["stopped", 0]["status"] for t, now in history.items()}
    assert {before[t] for t in range(STEP_S, 61, STEP_S)} == {"OK"}


def test_never_committed_is_no_commit(history: dict[int, dict[str, Any]]) -> None:
    for now in history.values():
        row = now["groups"]["never"]
        assert (row["partitions"], row["lag"], row["status"]) == (0, None, None)


def test_the_end_of_an_idle_topic_is_ok(history: dict[int, dict[str, Any]]) -> None:
    assert set(statuses(history, "idle")) == {"OK"}
    row = history[150]["commits"]["idle", 0]
    assert (row["lag"], row["time_lag_ms"], row["stuck_since_ms"]) == (0, 0, None)


def test_falling_behind_is_warn(history: dict[int, dict[str, Any]]) -> None:
    assert set(statuses(history, "behind", 40)) == {"WARN"}
    row = history[100]["commits"]["behind", 0]
    assert row["lag_records_per_s"] == pytest.approx(40.0)
    assert row["time_to_clear_ms"] is None


def test_retention_overtakes_a_group(history: dict[int, dict[str, Any]]) -> None:
    early, late = history[90]["commits"]["overtaken", 0], history[195]["commits"]["overtaken", 0]
    assert early["lost_records"] == 0
    assert early["retention_risk_ms"] == pytest.approx(30_000, abs=2_000 * STEP_S)
    assert (late["lost_records"], late["retention_risk_ms"]) == (3_750, 0)
    assert late["lag"] - late["lost_records"] == 20_000, "what can still be read"


def test_a_leader_move_makes_no_spike(history: dict[int, dict[str, Any]]) -> None:
    rates = {t: now["partitions"]["steady", 0]["in_records_per_s"] for t, now in history.items()}
    assert rates[MOVE_S] is None
    for t, rate in rates.items():
        if t not in (0, MOVE_S):
            assert rate == pytest.approx(100.0), t
    assert history[MOVE_S]["partitions"]["steady", 0]["leader"] == 102


def test_a_lost_broker_is_counted_and_its_only_replica_offline(
    history: dict[int, dict[str, Any]],
) -> None:
    assert history[LOSS_S - STEP_S]["partitions"]["alone", 0]["leader"] == 103
    after = history[LOSS_S + STEP_S]
    assert after["partitions"]["alone", 0]["leader"] == -1
    assert after["partitions"]["alone", 0]["high_watermark"] == 10 * (LOSS_S - STEP_S)
    lost, empty = after["brokers"][103], after["brokers"][104]
    assert (lost["is_fenced"], lost["replicas"], lost["leaders"]) == (True, 1, 0)
    assert (empty["replicas"], empty["leaders"], empty["size_bytes"]) == (0, 0, 0)
    count = len(SINGLE) + 2 * MANY
    assert [after["brokers"][it]["replicas"] for it in (101, 102)] == [count, count]
    assert after["brokers"][102]["leaders"] == 1
