"""Who is silent, which rounds are waited for, and what goes: judged per source and cluster."""

from spark_metrics.state.job_state import NEVER_BACK_MS, JobState, Observed, RegisteredBroker
from spark_metrics.state.known_groups import SILENT_MS_MAX, RegisteredGroup, merge_groups
from spark_metrics.state.rounds import FORGET_MS, RETIRED_MS, RoundPart, SourceKey

T0_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


def heard(memory: JobState, at_ms: int, *parts: RoundPart) -> JobState:
    """The memory after a batch with these rounds, which the job looked at then."""
    brokers = tuple(
        RegisteredBroker(
            cluster=it.cluster, broker=it.broker, host="h", port=1, rack=None, is_fenced=False,
            is_controller=False, broker_epoch=1, disk_total_bytes=None, disk_usable_bytes=None,
            read_ms=it.round_ms,
        )
        for it in parts
    )  # fmt: skip
    return memory.observe(Observed(parts=parts, brokers=brokers, offsets={}, at_ms=T0_MS + at_ms))


def part(broker: int, at_ms: int, cluster: str = "c", interval_ms: int = 1_000) -> RoundPart:
    return RoundPart(
        cluster=cluster, broker=broker, broker_epoch=1, round_ms=T0_MS + at_ms,
        interval_ms=interval_ms, part=0, parts=1, has_brokers=False,
    )  # fmt: skip


def group(source: int, at_ms: int) -> RegisteredGroup:
    return RegisteredGroup(
        cluster="c", group_id=f"g{source}", source=source, round_ms=T0_MS + at_ms, state="Stable",
        protocol="", members=1, read_ms=T0_MS + at_ms,
    )  # fmt: skip


def kept(memory: JobState, *groups: RegisteredGroup) -> set[str]:
    found = merge_groups((), groups, memory.complete_rounds(), memory.silent_sources())
    return {it.group_id for it in found}


def test_a_clock_that_is_ahead_silences_nobody_nor_after_its_repair() -> None:
    for ahead_ms in (11 * 60_000, 12 * HOUR_MS):
        memory = JobState()
        for at_ms in range(0, 5_000, 1_000):
            memory = heard(memory, at_ms, part(1, at_ms + ahead_ms), part(2, at_ms), part(3, at_ms))
        assert memory.silent_sources() == set()
        assert kept(memory, group(2, 4_000), group(3, 4_000)) == {"g2", "g3"}
        for at_ms in range(5_000, 9_000, 1_000):
            memory = heard(memory, at_ms, part(1, at_ms), part(2, at_ms), part(3, at_ms))
        assert kept(memory, group(1, 8_000), group(2, 8_000)) >= {"g2"}
        silences = {it.broker for it in memory.known_brokers() if it.silent_ms}
        assert silences == set()


def test_a_coordinator_that_fell_silent_goes_by_both_clocks() -> None:
    memory = heard(JobState(), 0, part(1, 0), part(2, 0))
    later_ms = SILENT_MS_MAX + 1_000
    caught_up = heard(memory, 2_000, part(1, later_ms))
    assert caught_up.silent_sources() == set(), "the job stood still, and reads an hour at once"
    gone = heard(memory, later_ms, part(1, later_ms))
    assert gone.silent_sources() == {SourceKey("c", 2)}
    assert kept(gone, group(1, later_ms), group(2, 0)) == {"g1"}


def test_nobody_waits_for_a_slow_cluster_that_is_gone() -> None:
    memory = heard(JobState(), 0, part(1, 0), part(9, 0, "slow", 60_000))
    assert memory.interval_ms == 60_000
    later_ms = SILENT_MS_MAX + HOUR_MS
    memory = heard(memory, later_ms, part(1, later_ms))
    assert memory.interval_ms == 1_000


def test_a_retired_cluster_goes_with_all_that_it_told() -> None:
    memory = heard(JobState(), 0, part(1, 0), part(9, 0, "retired"))
    week_ms = RETIRED_MS + 1_000
    memory = heard(memory, week_ms, part(1, week_ms))
    assert {key.cluster for key in memory.registry} == {"c"}
    assert memory.complete_rounds()["retired", 9] == NEVER_BACK_MS
    later_ms = week_ms + FORGET_MS
    memory = heard(memory, later_ms, part(1, later_ms))
    assert {key.cluster for key in memory.sources} == {"c"}
    alone = heard(heard(JobState(), 0, part(1, 0)), later_ms, part(1, later_ms))
    assert alone.sources.keys() == {SourceKey("c", 1)}, "one that is back after weeks is there"
