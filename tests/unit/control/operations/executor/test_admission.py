"""The executor asks its own settings whether a command may be carried out, whoever sent it."""

import time
from dataclasses import replace
from typing import Any

import pytest

from control.kafka.connection.settings import KafkaSettings
from control.model.ids import ClusterId
from control.model.watched_cluster import Site, WatchedCluster
from control.move.commands import (
    ACT_AHEAD_MAX_MS,
    ControlAction,
    ControlCommand,
    ReassignCommand,
)
from control.move.decoding import decode_event
from control.move.events import Event, EventKind, encode_event
from control.move.state import accepted_data
from control.operations.errors import FencedError, NotConfiguredError
from control.operations.executor.admission import Admission
from control.operations.executor.executor import STRANGERS_TOLD_MAX, Executor, ExecutorSettings
from partiscope.identity import cluster_of_command
from partiscope.settings import Settings
from planner.proposal import PartitionChange
from tests.support.phrases import lacking

CHANGE = PartitionChange(topic="t", partition=0, before=(1,), after=(2,), size_bytes=0)
PROD = WatchedCluster(
    name="prod", bootstrap="prod:9092", cluster_id=ClusterId("p"), is_production=True
)


def settings() -> Settings:
    return Settings.model_validate(
        {"clusters": {"prod": {"bootstrap": "prod:1,prod:2", "production": True}}}
    )


def command(bootstrap: str = "prod:9092", confirmed: str = "", name: str = "mv-1") -> Any:
    return ReassignCommand(
        operation_id=name, bootstrap=bootstrap, changes=(CHANGE,), confirmed=confirmed
    )


@pytest.mark.parametrize(
    ("confirmed", "is_taken"),
    [("", False), ("pro", False), ("prod2", False), ("prod", True), ("prod/103", True)],
)
async def test_a_production_cluster_wants_its_name_in_the_command(
    confirmed: str, is_taken: bool
) -> None:
    words = await Admission(lambda _: PROD).refusal(command(confirmed=confirmed))
    assert (words == "") is is_taken
    assert is_taken or lacking(words, "prod", "production", "--cluster prod") == []


async def test_what_takes_load_off_a_production_cluster_wants_no_name() -> None:
    admission = Admission(lambda _: PROD)
    refused = {
        action
        for action in ControlAction
        if await admission.control_refusal(
            ControlCommand(operation_id="mv-1", action=action), command()
        )
    }
    assert refused == {ControlAction.RESUME, ControlAction.THROTTLE}
    named = ControlCommand(operation_id="mv-1", action=ControlAction.RESUME, confirmed="prod")
    assert await admission.control_refusal(named, command()) == ""


async def test_an_act_of_a_time_to_come_is_refused_and_tells_of_the_clocks() -> None:
    tomorrow_ms = round(time.time() * 1000) + ACT_AHEAD_MAX_MS + 60_000
    admission = Admission(lambda _: PROD)
    words = await admission.control_refusal(act(ControlAction.PAUSE, tomorrow_ms), command())
    assert lacking(words, "ahead", "clock") == []
    in_time = act(ControlAction.PAUSE, tomorrow_ms - 120_000)
    assert await admission.control_refusal(in_time, command()) == ""


@pytest.mark.parametrize("asked", ["prod:2", "attacker:5555,prod:2", "PROD:1"])
async def test_a_command_reaches_the_configured_addresses_of_its_cluster_alone(asked: str) -> None:
    admission = Admission(lambda site: cluster_of_command(settings(), "bus:1", site))
    assert await admission.refusal(command(asked, "prod")) == ""
    assert admission.reached(Site(asked)).bootstrap == "prod:1,prod:2"


@pytest.mark.parametrize("asked", ["attacker:5555", "prod:3", "", "prod"])
async def test_a_cluster_that_the_settings_do_not_name_is_refused(asked: str) -> None:
    admission = Admission(lambda site: cluster_of_command(settings(), "bus:1", site))
    words = await admission.refusal(command(asked, "prod"))
    assert lacking(words, repr(asked), "prod:1,prod:2", "bus:1", "[clusters.NAME]") == []


async def test_without_clusters_in_the_settings_the_bus_is_the_only_one() -> None:
    found = cluster_of_command(Settings(), "127.0.0.1:1", Site("localhost:1"))
    assert found.bootstrap == "127.0.0.1:1"


def beginning(begun: ReassignCommand) -> list[Event]:
    """As anybody may write them: nobody has done it."""
    name = begun.operation_id
    accepted, progress = accepted_data(begun), {"bytes_done": 0, "bytes_total": 0}
    progress |= dict.fromkeys(("partitions_done", "partitions_total", "wave", "waves"), 0)
    started = {"progress": progress}
    return [
        Event(operation_id=name, kind=EventKind.ACCEPTED, at_ms=1, data=accepted),
        Event(operation_id=name, kind=EventKind.STARTED, at_ms=2, data=started),
    ]


async def test_nothing_is_done_for_a_command_that_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor where its events say that it has begun."""

    def cluster_of(site: Site) -> WatchedCluster:
        raise NotConfiguredError(site.bootstrap, ["prod"])

    said, events = list[str](), list[Event]()
    nobody: Any = None
    settings = ExecutorSettings(bus=KafkaSettings(bootstrap="bus:1"), cluster_of=cluster_of)
    executor = Executor(settings, said.append)

    async def emit(event: Event) -> None:
        events.append(event)
        executor.memory.apply(event)

    monkeypatch.setattr(executor, "emit", emit)
    memory, forged = executor.memory, command("attacker:5555", name="mv-forged")
    memory.take(command("attacker:5555"))
    memory.take(forged)
    for event in beginning(forged):
        memory.apply(event)
    for each in memory.unjudged():
        await executor._judge(nobody, each)
    assert [(it.operation_id, it.kind) for it in events] == [
        ("mv-1", EventKind.ACCEPTED),
        ("mv-1", EventKind.REFUSED),
        ("mv-forged", EventKind.NOTE),
    ]
    assert lacking(" ".join(said), "mv-forged", "attacker:5555") == []
    assert (memory.busy_clusters(), memory.unjudged()) == (set(), [])


def test_an_operation_that_moved_nothing_is_not_offered_for_rollback() -> None:
    executor = Executor(ExecutorSettings(bus=KafkaSettings(bootstrap="bus:1")), lambda _: None)
    for event in [
        *beginning(command()),
        Event(operation_id="mv-1", kind=EventKind.FINISHED, at_ms=3, data={"outcome": "failed"}),
    ]:
        executor.memory.apply(event)
    state = executor.memory.state_of("mv-1")
    assert (state.is_finished, state.may_roll_back, state.may("rollback")) == (True, False, False)


class Told:
    """An executor whose events are kept, and what it says of each command."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, known: WatchedCluster = PROD) -> None:
        self.events: list[Event] = []
        self.said: list[str] = []
        settings = ExecutorSettings(
            bus=KafkaSettings(bootstrap="bus:1"), cluster_of=lambda _: known, requires_proof=True
        )
        self.executor = Executor(settings, self.said.append)
        monkeypatch.setattr(self.executor, "emit", self._emit)
        self.executor.memory.take(command(confirmed="prod"))
        for event in beginning(command(confirmed="prod")):
            self.executor.memory.apply(event)

    async def _emit(self, event: Event) -> None:
        self.events.append(event)
        self.executor.memory.apply(event)

    async def hears(self, *commands: ControlCommand) -> list[tuple[int, str]]:
        """What the operation tells of refused acts after these came."""
        batches: list[list[ControlCommand]] = [list(commands)]

        class Owner:
            is_owner = False

            async def next_commands(self) -> list[ControlCommand]:
                return batches.pop()

        owner: Any = Owner()
        with pytest.raises(FencedError):
            await self.executor._listen(owner)
        return list(self.executor.memory.state_of("mv-1").refused_acts)


def act(action: ControlAction, at_ms: int, **further: Any) -> ControlCommand:
    return ControlCommand(operation_id="mv-1", action=action, submitted_ms=at_ms, **further)


async def test_an_act_that_is_refused_is_told_by_the_operation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told(monkeypatch)
    throttle = act(ControlAction.THROTTLE, 10, throttle=1 << 20)
    forged = act(ControlAction.PAUSE, 20, is_foreign=True)
    (first, second) = await told.hears(throttle, forged)
    assert (first[0], second[0]) == (10, 20)
    assert lacking(first[1], "throttle is refused", "production", "--cluster prod") == []
    assert lacking(second[1], "pause is refused", "no proof", "--data") == []
    flags = told.executor.memory.flags_of("mv-1")
    assert (flags.throttle, flags.is_paused) == (None, False)
    again = decode_event(encode_event(told.events[0]))
    assert again.data["refused_act_ms"] == 10
    assert told.executor.memory.state_of("mv-1").notes[-1] == second[1]


async def test_strangers_fill_neither_the_notes_nor_the_bus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told(monkeypatch)
    flood = [act(ControlAction.CANCEL, at_ms, is_foreign=True) for at_ms in range(500)]
    await told.hears(*flood)
    state = told.executor.memory.state_of("mv-1")
    assert (len(told.events), len(state.notes)) == (STRANGERS_TOLD_MAX, 1)
    assert not told.executor.memory.flags_of("mv-1").is_cancelled


async def test_an_old_act_that_is_written_again_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told(monkeypatch)
    pause, resume = act(ControlAction.PAUSE, 10), act(ControlAction.RESUME, 20, confirmed="prod")
    slow = act(ControlAction.THROTTLE, 30, throttle=1 << 20, confirmed="prod")
    fast = act(ControlAction.THROTTLE, 40, throttle=1 << 30, confirmed="prod")
    assert await told.hears(pause, resume, slow, fast, fast) == []
    flags = told.executor.memory.flags_of("mv-1")
    for copied in (pause, slow, resume):
        refused = await told.hears(copied)
        assert lacking(refused[-1][1], copied.action.value, "overtaken or copied") == []
    assert (flags.is_paused, flags.throttle) == (False, 1 << 30)


async def test_an_executor_that_begins_anew_counts_acts_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It reads all of them once more, copies included, and tells nothing twice."""
    told = Told(monkeypatch)
    pause, resume = act(ControlAction.PAUSE, 10), act(ControlAction.RESUME, 20, confirmed="prod")
    for each in (pause, resume, pause):
        await told.executor._take(each)
    assert (told.executor.memory.flags_of("mv-1").is_paused, told.events) == (False, [])


async def test_acts_on_what_is_left_alone_are_refused_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told(monkeypatch, replace(PROD, is_read_only=True))
    nobody: Any = None
    for each in told.executor.memory.unjudged():
        await told.executor._judge(nobody, each)
    assert lacking(" ".join(told.executor.memory.state_of("mv-1").notes), "read_only") == []
    (refused,) = await told.hears(act(ControlAction.CANCEL, 10))
    assert lacking(refused[1], "cancel is refused", "read_only") == []
