"""Whatever somebody writes to the bus: it is read to an event or to one error, and folds."""

import json
import zlib
from base64 import b64encode
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.move.change_codec import INFLATED_BYTES_MAX
from control.move.commands import ReassignCommand
from control.move.decoding import RecordError, decode_command, decode_event
from control.move.events import MESSAGE_LENGTH_MAX, Event, EventKind, encode_event
from control.move.journal_lines import line_of_event, lines_of_state
from control.move.known_states import KnownStates
from control.move.state import OperationState, submitted
from control.views.tables.journal import JOURNAL
from control.views.tables.moves import move_row
from tests.support.cases import case

NOW_MS: Final = 1_800_000_000_000
CHANGE: Final = {"topic": "t", "partition": 0, "before": [1], "after": [2], "size": 5}
PROGRESS: Final = {
    "bytes_done": 1, "bytes_total": 2, "partitions_done": 0, "partitions_total": 1, "wave": 1,
    "waves": 1, "in_flight": ["t-0"], "stalled": [{"topic": "t", "partition": 0, "reason": "r"}],
    "moving": [{"topic": "t", "partition": 0, "bytes_done": 1, "bytes_total": 2}], "spread_s": 1,
}  # fmt: skip
THROTTLE: Final = {"rate": 5, "brokers": [1], "entries": {"t": {"leader": ["0:1"]}}}
VALID: Final[dict[str, Any]] = {
    "who": "a", "reason": "b", "bootstrap": "h:1", "cluster_id": "c", "rollback_of": None,
    "submitted_ms": 1, "throttle": "auto", "yields": {"mode": "slow"}, "partitions": 1,
    "planned_bytes": 5, "changes": [CHANGE], "progress": PROGRESS, "expected_s": [1, 2],
    "empties": [3], "topic_ids": {"t": "i"}, "before": {"0": [1]}, "wave": 1, "groups": ["g"],
    "changed": ["x"], "refused": {"t-0": "gone"}, "stops": "why", "going_back": [0, 7],
    "outcome": "done", "fates": "m", "misses": {"foreseen": 0, "left": [0], "is_adaptive": True},
    "after": {"a": 1}, "error": "e", "opens_ms": 5,
    "window": {"start": "01:00", "until": "05:00", "zone": "UTC"}, **THROTTLE, **PROGRESS,
}  # fmt: skip
"""A value of every key that some kind of event reads."""


def valid(kind: EventKind) -> dict[str, Any]:
    return {**VALID, "before": {"a": 1}} if kind is EventKind.JOURNAL else dict(VALID)


numbers = st.integers(-(2**70), 2**70) | st.floats() | st.sampled_from([2**31, 2**63, 1e400])
leaves = st.none() | st.booleans() | numbers | st.text(max_size=20)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def odd_data(draw: st.DrawFn, kind: EventKind) -> dict[str, Any]:
    """What a kind reads, with at most two of it replaced or taken away."""
    data = valid(kind)
    for name in draw(st.lists(st.sampled_from(sorted(data)), max_size=2)):
        if draw(st.booleans()):
            data[name] = draw(values)
        else:
            data.pop(name, None)
    return data


@st.composite
def odd_events(draw: st.DrawFn) -> bytes:
    """Mostly of a known operation and kind."""
    kind = draw(st.sampled_from(EventKind))
    return json.dumps(
        {
            "operation_id": draw(st.sampled_from(["mv-1", "mv-2"]) | st.text(max_size=5)),
            "kind": kind.value,
            "at_ms": draw(st.integers(0, NOW_MS) | values),
            "message": draw(st.text(max_size=20) | values),
            "data": draw(odd_data(kind) | values),
        }
    ).encode()


def event_or_none(value: bytes | None) -> Event | None:
    try:
        return decode_event(value)
    except RecordError:
        return None


def shown(state: OperationState) -> None:
    move_row(state, now_ms=NOW_MS)
    for line in lines_of_state(state):
        JOURNAL.row(line)
    json.dumps(state.document(), allow_nan=False).encode()


@given(st.lists(odd_events(), max_size=12))
def test_every_history_of_odd_events_folds_and_can_be_shown(records: list[bytes]) -> None:
    known = KnownStates()
    for value in records:
        event = event_or_none(value)
        if event is not None:
            assert decode_event(encode_event(event)) == event
            known.take(event)
            if event.kind is EventKind.JOURNAL:
                JOURNAL.row(line_of_event(event))
    for state in known.all():
        shown(state)
        shown(known.get(state.operation_id))


def test_what_the_fuzzer_begins_with_is_valid() -> None:
    """Otherwise it would see nothing but refusals."""
    for kind in EventKind:
        with case(kind):
            event = Event(operation_id="mv-1", kind=kind, at_ms=1, data=valid(kind))
            assert decode_event(encode_event(event)).kind is kind


@given(st.binary(max_size=60) | values.map(lambda it: json.dumps(it).encode()))
def test_any_bytes_are_an_event_or_one_error(value: bytes) -> None:
    event_or_none(value)


@given(odd_data(EventKind.ACCEPTED), st.sampled_from(["reassign", "control"]) | values, values)
def test_any_command_is_read_or_refused(data: dict[str, Any], kind: object, action: object) -> None:
    text = json.dumps({**data, "operation_id": "mv-1", "kind": kind, "action": action})
    try:
        command = decode_command(text.encode())
    except RecordError:
        return
    if isinstance(command, ReassignCommand):
        shown(submitted(command))


def packed_zeros(size: int) -> str:
    return b64encode(zlib.compress(b'{"topics":[' + b"0," * (size // 2) + b"0]}")).decode()


@pytest.mark.parametrize(
    "value",
    [
        b'{"operation_id":"mv-x","kind":"accepted","at_ms":1,"data":{}}',
        b'{"operation_id":"mv-x","kind":"note","at_ms":1,"data":' + b'{"a":' * 9_000 + b"}" * 9_001,
        b"[" * 100_000,
        b'{"operation_id":"mv-x","kind":"note","at_ms":Infinity}',
        b'{"operation_id":"mv-x","kind":"note","at_ms":1e400}',
        b'{"operation_id":"mv-x","kind":"note","at_ms":253402300800000}',
        b'{"operation_id":"mv-x","kind":"note","at_ms":1,"message":"\\ud800"}',
        b'{"operation_id":"mv-x\\n2026 ERROR forged","kind":"note","at_ms":1}',
        b'{"operation_id":"mv-x\\n","kind":"note","at_ms":1}',
        b'{"operation_id":"","kind":"note","at_ms":1}',
        b'{"operation_id":"mv-x","kind":"note","at_ms":1,"message":"'
        + b"x" * (MESSAGE_LENGTH_MAX + 1)
        + b'"}',
        b'{"operation_id":"mv-x","kind":"wave_started","at_ms":1,"data":{"wave":"\xc2\xb2"}}',
    ],
)
def test_records_that_ended_a_process_are_one_error(value: bytes) -> None:
    with pytest.raises(RecordError):
        decode_event(value)


def test_what_is_packed_is_bounded_before_it_is_inflated() -> None:
    data = {**VALID, "changes": packed_zeros(4 * INFLATED_BYTES_MAX)}
    bomb = json.dumps({"operation_id": "a", "kind": "accepted", "at_ms": 1, "data": data}).encode()
    assert len(bomb) < 300_000
    with pytest.raises(RecordError, match="exceed"):
        decode_event(bomb)


def test_our_own_long_message_is_cut_not_lost() -> None:
    long = Event(operation_id="a", kind=EventKind.NOTE, at_ms=1, message="é" * 70_000)
    assert decode_event(encode_event(long)).message == "é" * (MESSAGE_LENGTH_MAX - 1) + "…"
