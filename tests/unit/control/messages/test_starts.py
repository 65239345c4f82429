"""Where to begin reading, as people write it."""

import time

import pytest

from control.kafka.records.reader import StartKind
from control.messages.starts import parse_start

NOW_MS = 1_795_000_000_000


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("earliest", StartKind.EARLIEST, 0),
        ("latest", StartKind.LATEST, 0),
        ("-50", StartKind.LAST, 50),
        ("4711", StartKind.OFFSET, 4711),
        ("10m", StartKind.TIMESTAMP, NOW_MS - 600_000),
        ("1.5h", StartKind.TIMESTAMP, NOW_MS - 5_400_000),
        ("2026-11-21T09:00:00Z", StartKind.TIMESTAMP, 1_795_251_600_000),
        ("-10m", StartKind.TIMESTAMP, NOW_MS - 600_000),
        ("09:00", StartKind.TIMESTAMP, 1_794_992_400_000),
        ("2026-11-21T09:00", StartKind.TIMESTAMP, 1_795_251_600_000),
    ],
)
def test_places_in_a_topic(
    text: str, kind: StartKind, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    start = parse_start(text, now_ms=NOW_MS)
    monkeypatch.undo()
    time.tzset()
    assert (start.kind, start.value) == (kind, value)


def test_anything_else_is_told_what_can_be_written() -> None:
    with pytest.raises(ValueError, match="'soon' is none of: -50"):
        parse_start("soon", now_ms=NOW_MS)
