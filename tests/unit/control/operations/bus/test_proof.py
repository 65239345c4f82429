"""Records of the bus prove which installation wrote them, and screens and executor ask for it."""

import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from control.kafka.connection.settings import KafkaSettings
from control.kafka.records.producer import OutgoingRecord
from control.model.watched_cluster import WatchedCluster
from control.move.commands import ControlAction, ControlCommand, ReassignCommand
from control.move.events import Event, EventKind
from control.move.journal_lines import line_of_event, line_of_state, lines_of_events
from control.move.known_states import KnownStates
from control.move.state import OperationState, accepted_data, apply_event
from control.operations.bus import proof
from control.operations.bus.moves_feed import Moves
from control.operations.bus.proof import HEADER, is_proven, proof_headers, use_keys
from control.operations.bus.topics import Bus
from control.operations.bus.unreadable import Unreadable
from control.operations.errors import ProofKeyError
from control.operations.executor.admission import Admission
from control.operations.executor.executor import Executor, ExecutorSettings
from control.views.tables.journal import JOURNAL
from partiscope.proof_keys import KeyFiles
from planner.proposal import PartitionChange
from tests.support.phrases import lacking

CHANGE = PartitionChange(topic="t", partition=0, before=(1,), after=(2,), size_bytes=0)
COMMAND = ReassignCommand(operation_id="mv-1", bootstrap="c:1", changes=(CHANGE,), who="me")
ACCEPTED = Event(operation_id="mv-1", kind=EventKind.ACCEPTED, at_ms=1, data=accepted_data(COMMAND))
LINE = Event(
    operation_id="do-1", kind=EventKind.JOURNAL, at_ms=1, message="x", data={"who": "admin"}
)
OURS: tuple[str, bytes, bytes] = ("topic", b"key", b"value")


@dataclass(frozen=True)
class Read:
    """A record as a client reads it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: proof.Headers
    offset: int = 0


@pytest.fixture(autouse=True)
def key_file(tmp_path: Path) -> Iterator[Path]:
    before = proof._keys
    use_keys(KeyFiles(tmp_path / "installation.key"))
    yield tmp_path / "installation.key"
    use_keys(before)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Read]:
    """Everything that a bus has taken."""
    told: list[Read] = []

    class Producer:
        async def send(self, record: OutgoingRecord) -> None:
            told.append(Read(record.topic, record.key, record.value, record.headers))

    async def started(_: Any) -> Any:
        return Producer()

    monkeypatch.setattr(Bus, "_started", started)
    return told


def proven(topic: str, key: bytes | None, value: bytes | None, headers: Any = None) -> bool:
    return is_proven(topic, key, value, proof_headers(*OURS) if headers is None else headers)


def test_a_record_is_proven_as_it_was_written_and_in_no_other_way() -> None:
    assert proven(*OURS)
    others = [
        ("other", b"key", b"value"),
        ("topic", b"other", b"value"),
        ("topic", b"key", b"other"),
        ("topic", b"keyv", b"alue"),
        ("topi", b"ckey", b"value"),
        ("topic", None, b"value"),
        ("topic", b"key", None),
    ]
    assert not any(proven(*each) for each in others)
    (good,) = proof_headers(*OURS)
    for headers in ((), ((HEADER, None),), ((HEADER, b""),), (good, good), (("x", good[1]),)):
        assert not proven(*OURS, headers=headers)


def test_the_key_is_made_once_for_its_owner_alone(key_file: Path) -> None:
    keys = [KeyFiles(key_file) for _ in range(8)]
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda it=it: found.append(it.own())) for it in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found[0]) == 32
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600


def test_each_installation_has_its_key_and_others_are_known_by_theirs(tmp_path: Path) -> None:
    first, second = tmp_path / "1" / "installation.key", tmp_path / "2" / "installation.key"
    use_keys(KeyFiles(first))
    headers = proof_headers(*OURS)
    use_keys(KeyFiles(second))
    assert not proven(*OURS, headers=headers)
    use_keys(KeyFiles(second, [first]))
    assert proven(*OURS, headers=headers)
    assert proven(*OURS)


@pytest.mark.parametrize("content", [b"short", b"x" * 33])
def test_what_is_no_key_is_refused_by_its_name(key_file: Path, content: bytes) -> None:
    key_file.write_bytes(content)
    with pytest.raises(ProofKeyError) as told:
        proof_headers(*OURS)
    assert lacking(str(told.value), repr(str(key_file)), "32 bytes") == []
    assert not is_proven(*OURS, ((HEADER, b"x" * 32),)), "and proves nothing"


async def test_what_the_bus_takes_is_proven_and_what_was_read_without_stays_so(
    sent: list[Read],
) -> None:
    bus, reader = Bus("bus:1"), Unreadable()
    await bus.publish_command(COMMAND)
    await bus.publish_event(ACCEPTED)
    command, event = reader.command(sent[0]), reader.event(sent[1])
    assert command == COMMAND
    assert event is not None
    assert not event.is_foreign
    forged = reader.command(replace(sent[0], headers=()))
    assert forged == replace(COMMAND, is_foreign=True)
    await bus.publish_command(replace(COMMAND, is_foreign=True))
    assert sent[-1].headers == (), "an executor that keeps the topic small makes nothing true"


async def test_the_executor_obeys_nobody_whom_it_does_not_know() -> None:
    forged, stop = (
        replace(COMMAND, is_foreign=True),
        ControlCommand(operation_id="mv-1", action=ControlAction.CANCEL, is_foreign=True),
    )
    told = OperationState(operation_id="mv-1", is_foreign=True)
    strict = Admission(lambda _: WatchedCluster(bootstrap="c:1"))
    for words in (
        await strict.refusal(forged),
        await strict.refusal(COMMAND, told),
        await strict.control_refusal(stop, COMMAND),
        await strict.control_refusal(stop, None),
    ):
        assert lacking(words, "no proof", "--data", "proof.further_key_files") == []
    settings = ExecutorSettings(bus=KafkaSettings(bootstrap="bus:1"), requires_proof=False)
    lenient = Executor(settings, print)._admission
    assert await lenient.refusal(forged, told) == ""
    assert await lenient.control_refusal(stop, COMMAND) == ""


def test_what_others_write_about_an_operation_of_ours_changes_nothing() -> None:
    ours = apply_event(OperationState(operation_id="mv-1"), ACCEPTED)
    ended = Event(operation_id="mv-1", kind=EventKind.FINISHED, at_ms=2, data={"outcome": "done"})
    assert apply_event(ours, replace(ended, is_foreign=True)) == ours
    known = KnownStates()
    other = replace(COMMAND, changes=(replace(CHANGE, after=(9,)),))
    plan = replace(ACCEPTED, data=accepted_data(other), is_foreign=True)
    for event in (ACCEPTED, plan, replace(ended, is_foreign=True)):
        known.take(event)
    assert known.get("mv-1").changes == (CHANGE,)
    assert not known.get("mv-1").is_finished
    assert apply_event(ours, ended).is_finished


def test_who_was_quicker_than_the_executor_does_not_count() -> None:
    data = {**ACCEPTED.data, "who": "admin"}
    forged = replace(ACCEPTED, data=data, is_foreign=True)
    early = apply_event(OperationState(operation_id="mv-1"), forged)
    assert (early.who, early.is_foreign, early.may_roll_back) == ("admin", True, False)
    now = apply_event(early, ACCEPTED)
    assert (now.who, now.is_foreign) == ("me", False)


def test_the_executors_answer_makes_a_forged_command_no_operation_of_ours() -> None:
    command = replace(COMMAND, is_foreign=True, who="admin")
    answered = replace(ACCEPTED, data=accepted_data(command))
    state = apply_event(OperationState(operation_id="mv-1"), answered)
    assert state.is_foreign
    assert line_of_state(state).is_foreign
    assert state.document()["is_proven"] is False


@pytest.mark.parametrize("is_foreign", [True, False])
def test_the_journal_marks_a_line_that_nobody_has_proven(is_foreign: bool) -> None:
    row = JOURNAL.row(line_of_event(replace(LINE, is_foreign=is_foreign)))
    assert ("not proven" in row.cell("who").text) is is_foreign
    assert "admin" in row.cell("who").text
    assert row.cell("proof").text == ("not proven" if is_foreign else "proven")


def test_a_line_of_the_journal_that_is_proven_is_not_replaced_by_another() -> None:
    forged = replace(LINE, message="nothing of interest", is_foreign=True)
    moves = Moves(None)
    for event in (LINE, forged):
        moves.take(event)
    for (line,) in (
        lines_of_events([LINE, forged]),
        lines_of_events([forged, LINE]),
        moves.journal,
    ):
        assert (line.what, line.is_foreign) == ("x", False)
