"""Seeded runs of transactions: lost answers, coordinators that move, kills, zombies, timeouts.

At the end of a run: what was acknowledged as committed is seen in every partition, what was
aborted or fenced in none, and what nobody was told of in all or none; no transaction is open. A
failure tells its seed and the last steps; the invariants are shown to catch planted bugs.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from broker.log.producer.producer_state import ProducerAppend, ProducerState
from tests.simulation.transaction_model import PARTITIONS, Client, Cluster, Told
from tests.support.virtual_time import run_in_virtual_time
from tests.unit.broker.log.transactions import committed

SEEDS: Final = range(6)
PLANTED_SEEDS: Final = range(30)
"""A planted bug shows itself in one of the first few."""
MANY_SEEDS: Final = range(1_000, 1_300)
STEPS: Final = 25
STORY_STEPS: Final = 30
RETRIES: Final = 40
SETTLE_S: Final = 30


class Run:
    """Two transactional ids; each of them has an instance, and a zombie of the one before."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.cluster = Cluster(directory, self.dice)
        self.clients = {name: Client(self.cluster, name) for name in ("a", "b")}
        self.zombies: list[Client] = []
        self.outcomes: dict[int, bool | None] = {}
        """By transaction: committed, aborted, or None where nobody was told."""
        self.values: dict[int, set[bytes]] = {}
        self.told: Told = deque(maxlen=STORY_STEPS)

    async def run(self) -> None:
        await self.cluster.start()
        works = [asyncio.create_task(self._work(name)) for name in self.clients]
        torment = asyncio.create_task(self._torment())
        await asyncio.gather(*works)
        torment.cancel()
        await asyncio.gather(torment, return_exceptions=True)
        await self._heal()
        self.check()
        await self.cluster.transactions.stop()

    async def _turns(self) -> None:
        for _ in range(self.dice.randrange(30)):
            await asyncio.sleep(0)

    async def _work(self, name: str) -> None:
        for _ in range(STEPS):
            client = self.clients[name]
            if client.producer is None or self.dice.random() < 0.05:
                former, client = client, Client(self.cluster, name)
                self.clients[name] = client
                if not await self._retried(client.begin):
                    client.producer = None
                    continue
                # Until then it is no zombie: what it writes before the marker of its own commit is
                # committed, in Kafka's transactions of version 0 as well.
                if former.producer is not None:
                    self.zombies.append(former)
            await self._transaction(client)
            await self._turns()

    async def _retried(self, call: Callable[[], Any]) -> bool:
        for _ in range(RETRIES):
            if await call():
                return True
            await asyncio.sleep(0.001)
        return False

    async def _transaction(self, client: Client) -> None:
        number = len(self.outcomes)
        self.outcomes[number], self.values[number] = False, set()
        for key in self.dice.sample(PARTITIONS, self.dice.randint(1, 2)):
            value = b"%d:%d" % (number, key[1])
            if not await self._retried(lambda k=key, v=value: client.write(k, v)):  # type: ignore[misc]
                client.producer = None  # it gives up: the next instance begins anew
                self.told.append(f"{client.name}: {number} is given up")
                return
            self.values[number].add(value)
        is_commit = self.dice.random() < 0.6
        self.outcomes[number] = None if is_commit else False
        for _ in range(RETRIES):
            error = await client.end(is_commit=is_commit)
            if error is CoordinatorError.NONE:
                self.outcomes[number] = is_commit
                self.told.append(f"{client.name}: {number} is committed: {is_commit}")
                return
            await asyncio.sleep(0.001)
        client.producer = None

    async def _torment(self) -> None:
        while True:
            await asyncio.sleep(self.dice.random() * 0.02)
            kinds = [self._move, self._restart, self._pass_time, self._write_late]
            (kind,) = self.dice.choices(kinds, [3, 2, 1, 4])
            self.told.append(kind.__name__)
            await kind()

    async def _move(self) -> None:
        self.cluster.move(is_away=not self.cluster.is_away)

    async def _restart(self) -> None:
        await self.cluster.restart(is_killed=self.dice.random() < 0.5)

    async def _pass_time(self) -> None:
        self.cluster.clock.now_ms += 2_000
        await self.cluster.transactions.coordinator.abort_timed_out()

    async def _write_late(self) -> None:
        if self.zombies:
            zombie = self.dice.choice(self.zombies)
            await zombie.write(self.dice.choice(PARTITIONS), b"late", is_asking=False)

    async def _heal(self) -> None:
        """Everybody is back, and time passes: what is open is aborted, and has its markers."""
        self.cluster.replicas.is_calm = True
        if self.cluster.is_away:
            self.cluster.move(is_away=False)
        await self.cluster.loaded()
        coordinator = self.cluster.transactions.coordinator
        self.cluster.clock.now_ms += 2_000

        async def settle() -> None:
            while not all(it.state.is_ended for it in coordinator.transactions()):
                await coordinator.abort_timed_out()
                await asyncio.sleep(0.001)

        try:
            await asyncio.wait_for(settle(), SETTLE_S)
        except TimeoutError:
            open_now = list(map(str, coordinator.transactions()))
            raise AssertionError(f"TransactionsEnd: {open_now}") from None

    def _open(self) -> dict[int, int]:
        logs = [self.cluster.replicas.partitions[key].log for key in PARTITIONS]
        return {k: v for log in logs for k, v in log.producers.state.open_transactions().items()}

    def check(self) -> None:
        seen: set[bytes] = set()
        for key in PARTITIONS:
            log = self.cluster.replicas.partitions[key].log
            end = log.log_end_offset
            assert log.last_stable_offset(end) == end, f"NothingIsOpen: {key} {self._open()}"
            values = [record.value or b"" for record in committed(log, max_bytes=300)]
            assert len(values) == len(set(values)), f"Once: {key}"
            seen.update(values)
        assert b"late" not in seen, "NoZombieWrites"
        for number, outcome in self.outcomes.items():
            found = seen & {b"%d:0" % number, b"%d:1" % number}
            told = f"transaction {number} of {self.values[number]}: seen {found}, told {outcome}"
            if outcome is True:
                assert found == self.values[number], f"CommittedIsSeen: {told}"
            elif outcome is False:
                assert not found, f"AbortedIsHidden: {told}"
            else:
                assert found in (set(), self.values[number]), f"AllOrNothing: {told}"


async def run(directory: Path, seed: int) -> Run:
    """A failure tells the seed and the last steps."""
    found = Run(directory, seed)
    try:
        await found.run()
    except AssertionError as error:
        story = "\n".join(found.told)
        raise AssertionError(f"{error}\nseed {seed}\n{story}") from error
    finally:
        found.cluster.replicas.close()
    return found


def _run_all(directory: Path, seeds: range) -> list[Run]:
    return [run_in_virtual_time(run(directory / str(seed), seed)) for seed in seeds]


def test_transactions_are_whole(tmp_path: Path) -> None:
    found = _run_all(tmp_path, SEEDS)
    outcomes = [outcome for each in found for outcome in each.outcomes.values()]
    assert outcomes.count(True) > 30
    assert outcomes.count(False) > 30


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_three_hundred_more_seeds(tmp_path: Path) -> None:
    _run_all(tmp_path, MANY_SEEDS)
    print(f"{len(MANY_SEEDS)} seeds")


def _verify_nothing(self: ProducerState, *_: object) -> bool:
    """Late records open transactions that nobody ends."""
    return True


def _tell_nobody_of_aborts(self: ProducerAppend) -> list[Any]:
    """The index of aborted transactions stays empty."""
    return []


def _end_nothing(self: TransactionCoordinator, _: object) -> None:
    """A new coordinator does not go on with what the former one has decided."""


@pytest.mark.parametrize(
    ("bug", "invariant"),
    [
        ((ProducerAppend, "aborted", _tell_nobody_of_aborts), "AbortedIsHidden"),
        ((TransactionCoordinator, "_resume", _end_nothing), "TransactionsEnd"),
        ((ProducerState, "is_verified", _verify_nothing), "NoZombieWrites|NothingIsOpen|Once"),
    ],
    ids=["aborts are not indexed", "nobody goes on", "nothing is verified"],
)
def test_the_invariants_catch_the_bugs_planted_for_them(
    bug: tuple[object, str, Callable[..., Any]],
    invariant: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(*bug)
    monkeypatch.setattr("tests.simulation.test_transactions.SETTLE_S", 3)
    with pytest.raises(AssertionError, match=invariant) as caught:
        _run_all(tmp_path, PLANTED_SEEDS)
    assert "\nseed " in str(caught.value)
