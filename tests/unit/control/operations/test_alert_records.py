"""Records of the alerts topic: what is not proven or cannot be read counts for nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pydantic import TypeAdapter

from control.alerts.silences import Matcher, Silence
from control.operations.bus import proof
from control.operations.bus.alert_records import ALERTS_TOPIC, AlertRecords
from control.operations.bus.proof import Headers, proof_headers, use_keys

SILENCE = Silence(id="s", matcher=Matcher(subject="orders-*"), from_ms=1, until_ms=2, why="drill")


class _Keys:
    def own(self) -> bytes:
        return b"k" * 32

    def known(self) -> list[bytes]:
        return [b"k" * 32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """As both clients read one."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    topic: str = ALERTS_TOPIC
    offset: int = 7


@pytest.fixture(autouse=True)
def _keys() -> Iterator[None]:
    before = proof._keys
    use_keys(_Keys())
    yield
    use_keys(before)


def _record(key: bytes, value: bytes | None, *, is_proven: bool = True) -> _Record:
    headers = proof_headers(ALERTS_TOPIC, key, value or b"") if is_proven else ()
    return _Record(key=key, value=value, headers=headers)


def _value() -> bytes:
    return b'{"v":1,' + TypeAdapter(Silence).dump_json(SILENCE)[1:]


def test_a_silence_is_read_until_it_is_dropped() -> None:
    records = AlertRecords()
    records.take(_record(b"silence/s", _value()))
    assert records.silences == {"s": SILENCE}
    assert records.next_offset == 8
    records.take(_record(b"silence/s", None))
    assert records.silences == {}


def test_nobody_else_silences_an_alert_or_ends_a_silence() -> None:
    records = AlertRecords()
    records.take(_record(b"silence/s", _value(), is_proven=False))
    assert (records.silences, records.foreign) == ({}, 1)
    records.take(_record(b"silence/s", _value()))
    records.take(_record(b"silence/s", None, is_proven=False))
    assert records.silences == {"s": SILENCE}


@pytest.mark.parametrize("value", [b"", b"{", b'{"id":1}', b"[]", b"\xff"])
def test_what_cannot_be_read_changes_nothing(value: bytes) -> None:
    records = AlertRecords()
    for key in (b"silence/s", b"alert/a", b"delivery", b"\xff", b"other"):
        records.take(_record(key, value))
    assert (records.silences, records.alerts, records.delivery) == ({}, {}, None)
