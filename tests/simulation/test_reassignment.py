"""Seeded moves of one partition through kills, restarts and ISR changes, by the real controller.

After every step: a move that ends has its whole target in sync, so it never takes a partition below
min.insync.replicas; who is in sync holds what is committed. A failure tells its seed and the last
steps; each invariant is shown to catch a bug that is planted for it.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from broker.controller import partition_change
from broker.controller.alter_partition import (
    AlterPartition,
    IsrChange,
    IsrMember,
    decide_alter_partition,
)
from broker.controller.partition_change import PartitionChange, build_change
from broker.controller.reassignment import (
    AlterReassignments,
    Reassignment,
    decide_alter_reassignments,
)
from broker.metadata.image import PartitionImage
from tests.unit.broker.controller.images import (
    apply,
    cluster,
    decided,
    get,
    never,
    with_topic,
)

BROKERS: Final = (1, 2, 3, 4, 5, 6)
MIN_INSYNC_REPLICAS: Final = 2
SEEDS: Final = range(60)
STEPS: Final = 400
STORY_STEPS: Final = 30


class Moves:
    """One partition; `ends` is how many records each broker has of it, `committed` of them all."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.image = with_topic(cluster(len(BROKERS)), "t", (1, 2, 3))
        self.ends = dict.fromkeys(BROKERS, 0)
        self.committed = 0
        self.completed = 0
        self.told: deque[str] = deque(maxlen=STORY_STEPS)

    @property
    def partition(self) -> PartitionImage:
        return get(self.image, "t")

    def step(self) -> None:
        """One event of a random kind, and the invariants."""
        before = self.partition
        kinds: list[tuple[Callable[[], None], int]] = [
            (self._append, 50),
            (self._fetch, 200),
            (self._propose, 100),
            (self._reassign, 8),
            (self._cancel, 2),
            (self._fence_or_return, 4),
        ]
        kind = self.dice.choices([each for each, _ in kinds], [weight for _, weight in kinds])[0]
        kind()
        after = self.partition
        told = (after.replicas, after.adding_replicas, after.removing_replicas, after.isr)
        self.told.append(f"{kind.__name__}: {told}, leader {after.leader}, {self.ends}")
        self._check(before, after, is_cancelled=kind == self._cancel)

    def _check(self, before: PartitionImage, after: PartitionImage, *, is_cancelled: bool) -> None:
        if before.is_reassigning and not after.is_reassigning and not is_cancelled:
            self.completed += 1
            least = min(MIN_INSYNC_REPLICAS, len(after.replicas))
            assert len(after.isr) >= least, f"MinIsrAfterMove: {after.isr} of {after.replicas}"
        assert set(after.isr) <= set(after.replicas), f"IsrOfReplicas: {after.isr}"
        behind = [each for each in after.isr if self.ends[each] < self.committed]
        assert not behind, f"IsrHoldsCommitted: {behind} of {after.isr}"

    def _append(self) -> None:
        """The leader takes a record, when enough are in sync; what all have is committed."""
        now = self.partition
        if now.leader > 0 and len(now.isr) >= MIN_INSYNC_REPLICAS:
            self.ends[now.leader] += 1
        self._commit()

    def _commit(self) -> None:
        now = self.partition
        if now.leader > 0 and len(now.isr) >= MIN_INSYNC_REPLICAS:
            self.committed = max(self.committed, min(self.ends[each] for each in now.isr))

    def _fetch(self) -> None:
        """A live replica gets a record, or drops what a former leader gave it."""
        now, replica = self.partition, self.dice.choice(self.partition.replicas)
        if now.leader > 0 and self.image.brokers[replica].is_active:
            step = self.dice.randrange(1, 4)
            self.ends[replica] = min(self.ends[replica] + step, self.ends[now.leader])
        self._commit()

    def _propose(self) -> None:
        """The leader asks for who is in sync and who has caught up, now and then for fewer."""
        now = self.partition
        if now.leader <= 0:
            return
        live = [each for each in now.replicas if self.image.brokers[each].is_active]
        has_all = [each for each in live if self.ends[each] >= self.ends[now.leader]]
        wanted = [each for each in live if each in has_all or each in now.isr]
        isr = [each for each in wanted if each == now.leader or self.dice.random() < 0.95]
        change = IsrChange(
            topic_id=now.topic_id,
            partition=0,
            leader_epoch=now.leader_epoch,
            partition_epoch=now.partition_epoch,
            new_isr=tuple(IsrMember(broker_id=each) for each in isr),
        )
        epoch = self.image.brokers[now.leader].epoch
        command = AlterPartition(broker_id=now.leader, broker_epoch=epoch, changes=(change,))
        self.image = decided(self.image, decide_alter_partition(command, self.image))
        self._commit()

    def _alter(self, replicas: tuple[int, ...] | None) -> None:
        wanted = Reassignment(topic="t", partition=0, replicas=replicas)
        command = AlterReassignments(reassignments=(wanted,))
        decision = decide_alter_reassignments(command, self.image, is_unclean_enabled=never)
        self.image = decided(self.image, decision)

    def _reassign(self) -> None:
        target = self.dice.sample(BROKERS, self.dice.choice((2, 3, 3, 4)))
        self._alter(tuple(target))

    def _cancel(self) -> None:
        self._alter(None)

    def _fence_or_return(self) -> None:
        """A broker dies, and the controller takes it out of the ISR; or it returns."""
        broker_id = self.dice.choice(BROKERS)
        broker = self.image.brokers[broker_id]
        dead = [each for each in self.image.brokers.values() if each.fenced]
        if not broker.fenced and len(dead) >= 2:
            return
        brokers = {**self.image.brokers, broker_id: replace(broker, fenced=not broker.fenced)}
        self.image = replace(self.image, brokers=brokers)
        now = self.partition
        rest = tuple(each for each in now.isr if not brokers[each].fenced)
        change = PartitionChange(isr=rest or now.isr)
        record = build_change(now, change, lambda each: not brokers[each].fenced)
        if record is not None:
            self.image = apply(self.image, [record])


def run(seed: int) -> Moves:
    """A failure tells the seed and the last steps."""
    moves = Moves(seed)
    try:
        for _ in range(STEPS):
            moves.step()
    except AssertionError as error:
        story = "\n".join(moves.told)
        raise AssertionError(f"{error}\nseed {seed}\n{story}") from error
    return moves


def _run_all() -> list[Moves]:
    return [run(seed) for seed in SEEDS]


def test_a_move_never_takes_a_partition_below_min_insync_replicas() -> None:
    found = _run_all()
    assert sum(moves.completed for moves in found) > len(SEEDS) // 2
    assert sum(moves.committed for moves in found) > 5 * len(SEEDS)


def _complete_early(wanted: Any) -> Any:
    """A move ends as soon as one of its target is in sync."""
    target = tuple(each for each in wanted.replicas if each not in wanted.removing)
    isr = tuple(each for each in wanted.isr if each in target)
    return replace(wanted, isr=isr, replicas=target, adding=(), removing=()) if isr else wanted


def _take_the_target_for_in_sync(wanted: Any) -> Any:
    target = tuple(each for each in wanted.replicas if each not in wanted.removing)
    return replace(wanted, isr=target, replicas=target, adding=(), removing=())


@pytest.mark.parametrize(
    ("invariant", "bug"),
    [
        ("MinIsrAfterMove", _complete_early),
        ("IsrHoldsCommitted", _take_the_target_for_in_sync),
    ],
)
def test_an_invariant_catches_the_bug_planted_for_it(
    invariant: str, bug: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_change, "complete_reassignment", bug)
    with pytest.raises(AssertionError, match=f"^{invariant}.*") as caught:
        _run_all()
    assert "\nseed " in str(caught.value)
    assert "_propose: " in str(caught.value)
