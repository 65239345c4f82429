"""The bus is folded once, and then only what is new is read."""

import asyncio
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from control.model.ids import TopicPartition
from control.move import known_states
from control.move.commands import ReassignCommand, encode_command
from control.move.decoding import decode_event
from control.move.events import Event, EventKind, Outcome, encode_event
from control.move.known_states import KnownStates
from control.move.state import OperationState, accepted_data, apply_event
from control.operations.bus.ledger import Ledger
from control.operations.bus.proof import proof_headers
from control.operations.bus.topics import COMMANDS, EVENTS, operation_of
from control.operations.bus.unreadable import Unreadable
from planner.proposal import PartitionChange


class FakeBus:
    """Two topics in memory that count what is read of them."""

    def __init__(self) -> None:
        self.records: dict[TopicPartition, list[Any]] = {EVENTS: [], COMMANDS: []}
        self.read = 0
        self.unreadable = Unreadable()

    def put(self, partition: TopicPartition, key: str, value: bytes) -> None:
        offset = len(self.records[partition])
        record = SimpleNamespace(
            topic=partition.topic,
            key=key.encode(),
            value=value,
            offset=offset,
            headers=proof_headers(partition.topic, key.encode(), value),
        )
        self.records[partition].append(record)

    def ask(self, command: ReassignCommand) -> None:
        self.put(COMMANDS, command.operation_id, encode_command(command))

    def tell(self, name: str, kind: EventKind, **data: Any) -> None:
        event = Event(operation_id=name, kind=kind, at_ms=1, data=data)
        key = f"{name}/progress" if kind is EventKind.PROGRESS else f"{name}/{self.read}"
        self.put(EVENTS, key, encode_event(event))

    async def ends(self) -> dict[TopicPartition, int]:
        return {partition: len(records) for partition, records in self.records.items()}

    async def read_from(self, partition: TopicPartition, offset: int = 0) -> AsyncIterator[Any]:
        for record in self.records[partition][offset:]:
            self.read += 1
            yield record

    async def read_states(self, *, of: str) -> dict[str, OperationState]:
        state = OperationState(operation_id=of)
        for record in self.records[EVENTS]:
            if operation_of(record) == of:
                state = apply_event(state, event_of(record.value))
        return {of: state}


def event_of(value: bytes) -> Event:

    return decode_event(value)


def command_of(name: str, count: int = 3) -> ReassignCommand:
    changes = tuple(
        PartitionChange(topic="t", partition=n, before=(1, 2), after=(3, 2), size_bytes=10)
        for n in range(count)
    )
    return ReassignCommand(operation_id=name, bootstrap="b:1", changes=changes, submitted_ms=5)


def bus_with(*names: str, is_done: bool = True, count: int = 3) -> FakeBus:
    bus = FakeBus()
    for name in names:
        run_on(bus, name, is_done=is_done, count=count)
    return bus


def run_on(bus: FakeBus, name: str, *, is_done: bool = True, count: int = 3) -> None:
    command = command_of(name, count)
    bus.ask(command)
    bus.tell(name, EventKind.ACCEPTED, **accepted_data(command))
    if is_done:
        bus.tell(name, EventKind.FINISHED, outcome=Outcome.DONE.value)


def ledger_of(bus: Any) -> Ledger:
    return Ledger(bus)


async def test_what_was_read_is_never_read_again() -> None:
    bus = bus_with("mv-1", "mv-2")
    ledger = ledger_of(bus)
    assert {it.operation_id for it in await ledger.states()} == {"mv-1", "mv-2"}
    first = bus.read
    assert len(await ledger.states()) == 2
    assert bus.read == first
    run_on(bus, "mv-3", is_done=False)
    states = {it.operation_id: it for it in await ledger.states()}
    assert bus.read == first + 2, "a command and an event"
    assert len(states["mv-3"].changes) == 3, "what runs comes with its changes"
    bus.tell("mv-3", EventKind.FINISHED, outcome=Outcome.DONE.value)
    states = {it.operation_id: it for it in await ledger.states()}
    assert states["mv-3"].outcome is Outcome.DONE


async def test_what_has_ended_keeps_its_figures_and_gets_its_plan_when_asked_for() -> None:
    ledger = ledger_of(bus_with("mv-1", count=1500))
    (state,) = await ledger.states()
    assert (state.changes, state.partitions_count, state.planned_bytes) == ((), 1500, 15_000)
    whole = await ledger.get("mv-1")
    assert whole is not None
    assert whole.changes == command_of("mv-1", 1500).changes
    assert len(whole.fates) == 1500
    assert (await ledger.states(is_whole=True))[0].changes == whole.changes


async def test_an_event_of_an_older_release_tells_no_figures_and_they_are_counted() -> None:
    bus = FakeBus()
    command = command_of("mv-1")
    data = {k: v for k, v in accepted_data(command).items()
            if k not in ("partitions", "planned_bytes")}  # fmt: skip
    bus.tell("mv-1", EventKind.ACCEPTED, **data)
    bus.tell("mv-1", EventKind.FINISHED, outcome=Outcome.DONE.value)
    ledger = ledger_of(bus)
    (state,) = await ledger.states()
    assert (state.changes, state.partitions_count, state.planned_bytes) == ((), 3, 30)
    whole = await ledger.get("mv-1")
    assert whole is not None
    assert whole.changes == command.changes


async def test_what_nobody_answered_yet_is_there_until_it_is() -> None:
    bus = FakeBus()
    bus.ask(command_of("mv-1"))
    ledger = ledger_of(bus)
    assert [it.phase.value for it in await ledger.states()] == ["submitted"]
    bus.tell("mv-1", EventKind.ACCEPTED, **accepted_data(command_of("mv-1")))
    assert [it.phase.value for it in await ledger.states()] == ["waiting"]


async def test_a_bus_that_was_made_anew_is_read_anew() -> None:
    bus = bus_with("mv-1", "mv-2")
    ledger = ledger_of(bus)
    assert len(await ledger.states()) == 2
    bus.records = bus_with("mv-9").records
    assert [it.operation_id for it in await ledger.states()] == ["mv-9"]


async def test_the_event_loop_has_its_turn_between_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{Ledger.__module__}.SLICE_S", 0.0)
    names = [f"mv-{n}" for n in range(60)]
    asking = asyncio.create_task(ledger_of(bus_with(*names)).states())
    turns = 0
    while not asking.done():
        await asyncio.sleep(0)
        turns += 1
    assert len(asking.result()) == len(names)
    assert turns > len(names), "one after each record"


async def test_large_plans_are_folded_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{Ledger.__module__}.THREAD_FROM_BYTES", 1)
    take, folding = KnownStates.take, set[int]()

    def noted(self: KnownStates, event: Event) -> None:
        folding.add(threading.get_ident())
        take(self, event)

    monkeypatch.setattr(KnownStates, "take", noted)
    assert len(await ledger_of(bus_with("mv-1", "mv-2")).states()) == 2
    assert folding
    assert threading.get_ident() not in folding


def test_plans_are_bounded_in_bytes_and_the_oldest_ended_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_states, "PLANS_BYTES_MAX", 1_000)
    known = KnownStates()
    bus = bus_with(*(f"mv-{n}" for n in range(30)))
    for record in bus.records[EVENTS]:
        known.take(event_of(record.value))
    assert not known.has_plan("mv-0")
    assert known.has_plan("mv-29")
    assert known.get("mv-0").partitions_count == 3
