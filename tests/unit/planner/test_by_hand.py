"""Plans by hand: what is read, what is refused and with which way out, how leaders are ordered."""

from dataclasses import replace

import pytest

from control.model.ids import TopicPartition
from planner.by_hand import (
    NOTHING,
    HandError,
    LeaderOrder,
    edited,
    edits_text,
    parse_edits,
)
from planner.goals import PlanRequest
from planner.nearest import Nearest
from planner.optimizer import plan
from planner.reassignment_json import format_reassignment
from planner.topology import Topology
from tests.unit.planner.clusters import cluster, judged_as, seeded

RACKS: dict[int, str | None] = {0: "a", 1: "a", 2: "b", 3: "c"}
BEFORE = cluster(RACKS, [(0, 2), (1, 2), (2, 3), (3, 0)])


def placed(
    text: str, before: Topology = BEFORE, *, leaders: LeaderOrder = LeaderOrder.GIVEN
) -> dict[int, tuple[int, ...]]:
    """Replicas of the changed partitions."""
    changes = edited(before, NOTHING, parse_edits(text), leaders=leaders).changes
    return {change.partition: change.after for change in changes}


def test_several_partitions_are_placed_at_once() -> None:
    text = "t-0: 1,3; t-1: [2, 1]\n\n t-2 = 2,0\nt-3: now"
    assert placed(text) == {0: (1, 3), 1: (2, 1), 2: (2, 0)}


def test_of_a_file_for_another_cluster_only_the_first_entries_are_told() -> None:
    entries = "\n".join(f"other-{n}: 1,2" for n in range(5_000))
    with pytest.raises(HandError, match=r"other-9 does not exist.* and 4,990 more") as refused:
        placed(entries)
    assert "other-10 " not in str(refused.value)


def test_kafkas_json_is_read_as_well() -> None:
    text = format_reassignment({TopicPartition("t", 1): (3, 1)})
    assert placed(text) == {1: (3, 1)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "t-0: 1,9",
            r"t-0: broker 9 does not .*; \[1, 2\] would work",
        ),
        ("t-0: 2,2", r"t-0: \[2, 2\] names a broker twice; \[2, 0\] would work"),
        ("t-7: 1,2", r"t has no partition 7 \(0–3\)"),
        ("x-0: 1,2", "x-0 does not exist: .*; t does"),
        ("t-0 1,2", "'t-0 1,2' is no entry like orders-3: 101,102,103"),
        ("t-0: 1;2", "'2' is no entry"),
        ("t-0: one", "t-0: 'one' is neither .* nor now"),
        ("t-0: 1; t-0: 2", "t-0 is there twice"),
        ('{"version": 2, "partitions": []}', "Not supported version"),
        ("[]", "must be an object"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "replicas is empty"),
        ("t-0: 9,1; t-9: 1; t-1: 2,1", "t-0: broker 9.*; t has no partition 9"),
    ],
)
def test_what_cannot_be_is_named_with_what_would_work(text: str, words: str) -> None:
    with pytest.raises(HandError, match=words):
        placed(text)


@pytest.mark.parametrize(
    "text",
    [
        "t-0: " + ",".join(map(str, range(100_000))),
        "t-0: " + "1," * 100_000 + "1",
        "t-0: " + "x" * 100_000,
        "t" * 100_000 + "-0: 1",
        "t-0: 1" + " " * 100_000 + "x",
        "-0" * 100_000,
    ],
    ids=range(6),
)
def test_an_endless_entry_is_refused_in_few_words(text: str) -> None:
    with pytest.raises(HandError) as refused:
        placed(text)
    assert len(str(refused.value)) < 1_000


def test_a_stopped_broker_and_a_full_one_are_not_offered() -> None:
    brokers = tuple(
        replace(b, is_running=b.id != 3, capacity_bytes=220 if b.id == 1 else None)
        for b in BEFORE.brokers
    )
    before = replace(BEFORE, brokers=brokers)
    with pytest.raises(HandError, match=r"t-0: broker 3 does not run.* \[0, 2\] would"):
        placed("t-0: 0,3", before)
    with pytest.raises(
        HandError,
        match=r"t-3: broker 9 does not exist.* \[0, 2\] would work",
    ):
        placed("t-3: 0,9", before)
    with pytest.raises(HandError, match="3 brokers run, too few"):
        placed("t-0: 0,1,2,3", before)


def test_what_would_work_does_work() -> None:
    before = seeded(1)
    nearest = Nearest(before)
    for partition in before.partitions[:40]:
        works = nearest.working(partition, (partition.replicas[0], 999, partition.replicas[0]))
        assert works is not None
        assert works[0] == partition.replicas[0]
        proposal = edited(before, NOTHING, {partition.key: works})
        assert not any(v.is_new for v in judged_as(before, PlanRequest(), proposal).violations)


def test_leaders_are_kept_or_evened() -> None:
    text = "t-0: 3,0; t-1: 3,1; t-2: 3,2; t-3: 3,0"
    before = cluster(RACKS, [(0, 2), (1, 2), (2, 3), (0, 3)])
    assert placed(text, before) == {0: (3, 0), 1: (3, 1), 2: (3, 2), 3: (3, 0)}
    kept = placed(text, before, leaders=LeaderOrder.KEEP)
    assert kept == {0: (0, 3), 1: (1, 3)}
    evened = placed(text, before, leaders=LeaderOrder.BALANCE)
    after = before.with_replicas({TopicPartition("t", p): r for p, r in evened.items()})
    assert sorted(p.replicas[0] for p in after.partitions) == [0, 1, 2, 3]
    wanted = {0: {3, 0}, 1: {3, 1}, 2: {3, 2}, 3: {3, 0}}
    assert all(set(p.replicas) == wanted[p.partition] for p in after.partitions)


def test_an_edit_of_a_plan_is_judged_again_and_the_rest_stays() -> None:
    before = seeded(2)
    made = plan(before, PlanRequest())
    base = made.alternatives[0].proposal
    first, second, *_ = (change for change in base.changes if change.adding)
    text = f"{first.key}: now; {second.key}: {','.join(map(str, second.before[::-1]))}"
    proposal = edited(before, base, parse_edits(text))
    targets = base.targets()
    del targets[first.key]
    targets[second.key] = second.before[::-1]
    assert proposal.targets() == targets
    judged = judged_as(before, made.request, proposal)
    assert judged.proposal.moved_bytes < base.moved_bytes
    assert judged.lower_bound_bytes is not None
    assert judged.lower_bound_bytes <= judged.proposal.moved_bytes


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_as_text_is_read_back_the_same(seed: int) -> None:
    before = seeded(seed, partitions=60, brokers=6)
    for alternative in plan(before, PlanRequest()).alternatives:
        edits = parse_edits(edits_text(alternative.proposal))
        assert edits == alternative.proposal.targets()
        again = edited(before, NOTHING, edits)
        assert again.changes == alternative.proposal.changes
