"""Seeded runs of one coordinator: commits in flight, failed appends, moves away and back, restarts.

After every step: what the coordinator answers is never below a commit that it acknowledged. A
failure tells its seed and the last steps; the invariant is shown to catch planted bugs.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import pytest

from broker.coordinator.config import partition_for
from broker.coordinator.coordinator_runtime import CoordinatorRuntime
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.offsets.committed_offsets import GroupOffsets, StoredOffset
from broker.coordinator.records import CommittedOffset
from broker.coordinator.replay import Replay
from broker.log.log_validator import AppendInfo
from broker.protocol.records import Record
from broker.replication.errors import AppendTimedOutError
from tests.unit.broker.coordinator.memory import NODE_ID
from tests.unit.broker.coordinator.rig import Rig

SEEDS: Final = range(30)
STEPS: Final = 150
STORY_STEPS: Final = 40
TURNS_MAX: Final = 20
OTHER_NODE: Final = 102


class Offsets:
    """A consumer that commits ever larger offsets, several at a time."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.rig = Rig()
        self.acknowledged = self.next_offset = 0
        self.told: deque[str] = deque(maxlen=STORY_STEPS)
        self._commits = set[asyncio.Task[None]]()
        self._is_away = False
        append = self.rig.replicas.append_and_wait

        async def slow(*args: Any, **kwargs: Any) -> AppendInfo:
            """Answered in any order; some are answered with a failure though they are there."""
            result = await append(*args, **kwargs)
            await self._turns()
            if self.dice.random() < 0.1:
                return AppendInfo(error=AppendTimedOutError())
            return result

        self.rig.replicas.append_and_wait = slow  # type: ignore[method-assign]

    async def _turns(self) -> None:
        for _ in range(self.dice.randrange(TURNS_MAX)):
            await asyncio.sleep(0)

    async def run(self) -> None:
        await self.rig.start()
        for _ in range(STEPS):
            kinds = [self._commit, self._lose_or_regain, self._restart]
            (kind,) = self.dice.choices(kinds, [20, 2, 1])
            self.told.append(f"{kind.__name__}: {self.acknowledged} acknowledged")
            await kind()
            await self._turns()
            self.check()
        await asyncio.gather(*self._commits)
        self.check()
        await self.rig.groups.stop()

    async def settle(self) -> None:
        """Hear of every commit, also of those that failed: nobody else is told of them."""
        await asyncio.gather(*self._commits, return_exceptions=True)

    def check(self) -> None:
        """A coordinator that answers at all answers with no less than it acknowledged."""
        found = self.rig.groups.offsets.fetch("g", [("t", 0)])
        if found.error is not CoordinatorError.NONE:
            return
        committed = found.offsets.get(("t", 0))
        offset = 0 if committed is None else committed.offset
        assert offset >= self.acknowledged, f"OffsetsNeverGoBack: {offset} < {self.acknowledged}"

    async def _commit(self) -> None:
        self.next_offset += 1
        self._commits.add(asyncio.create_task(self._commit_one(self.next_offset)))

    async def _commit_one(self, offset: int) -> None:
        if await self.rig.commit(offset) is CoordinatorError.NONE:
            self.acknowledged = max(self.acknowledged, offset)
            self.told.append(f"{offset} is acknowledged")
            self.check()

    async def _lose_or_regain(self) -> None:
        self._is_away = not self._is_away
        for partition in self.rig.replicas.partitions.values():
            partition.is_leader = not self._is_away
            partition.leader_epoch += 1
        self.rig.metadata.lead(OTHER_NODE if self._is_away else NODE_ID)

    async def _restart(self) -> None:
        """A new coordinator over the same log, once the old one has answered everybody."""
        if not self._is_away:
            await asyncio.gather(*self._commits)
            await self.rig.restart()


async def run(seed: int) -> Offsets:
    """A failure tells the seed and the last steps."""
    offsets = Offsets(seed)
    try:
        await offsets.run()
    except AssertionError as error:
        await offsets.settle()
        story = "\n".join(offsets.told)
        raise AssertionError(f"{error}\nseed {seed}\n{story}") from error
    return offsets


async def _run_all() -> list[Offsets]:
    return [await run(seed) for seed in SEEDS]


async def test_committed_offsets_never_go_back() -> None:
    found = await _run_all()
    assert all(each.acknowledged > 20 for each in found)


def _keep_the_last_answered(
    self: GroupOffsets, key: tuple[str, int], committed: CommittedOffset, log_offset: int
) -> None:
    self.stored[key] = StoredOffset(committed=committed, log_offset=log_offset)


def _replay_the_first_of_each_key(
    self: Replay, record: Record, producer_id: int | None = None
) -> None:
    self.latest.setdefault(record.key, record)


def _answer_while_it_loads(self: CoordinatorRuntime[Any], group_id: str) -> Any:
    led = self._led.get(partition_for(group_id, 4))
    return CoordinatorError.NOT_COORDINATOR if led is None else led.shard


@pytest.mark.parametrize(
    "bug",
    [
        (GroupOffsets, "put", _keep_the_last_answered),
        (Replay, "apply", _replay_the_first_of_each_key),
        (CoordinatorRuntime, "locate", _answer_while_it_loads),
    ],
    ids=["the last answered wins", "the first record wins", "answers while it loads"],
)
async def test_the_invariant_catches_the_bug_planted_for_it(
    bug: tuple[object, str, Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*bug)
    with pytest.raises(AssertionError, match=r"^OffsetsNeverGoBack") as caught:
        await _run_all()
    assert "\nseed " in str(caught.value)
    assert "_commit: " in str(caught.value)
