"""Where a place is an offset or a time, a bare number is an offset, and no help says otherwise."""

import pytest

from control.kafka.records.reader import StartKind
from control.messages.starts import START_HELP, parse_start
from control.operations.catalogue.groups.offset_targets import (
    TARGET_HELP,
    TargetKind,
    parse_target,
)
from control.operations.catalogue.topics.delete_records import BEFORE_HELP

NOON: str = "1764320400000"


@pytest.mark.parametrize("words", [BEFORE_HELP, TARGET_HELP, START_HELP])
def test_no_help_offers_a_number_as_a_time(words: str) -> None:
    assert "offset" in words
    assert "1970" not in words


def test_a_number_that_could_be_a_time_is_an_offset() -> None:
    assert parse_target(NOON).kind is TargetKind.OFFSET
    assert parse_start(NOON, now_ms=0).kind is StartKind.OFFSET
