"""What a tab that follows a topic is told; tests/e2e/test_dashboard_follow.py has the readers."""

from dataclasses import replace
from typing import Final

import pytest

from control.kafka.records.following import Notice
from control.kafka.records.record import FetchedRecord, Passed, looked_for
from control.messages.decoding.decoder import Decoder
from control.messages.message_filters import FilterTexts
from control.messages.message_search import MessageSearch
from dashboard.live.message_reading import KEPT_MAX, Asked, Tail, asked_of
from tests.unit.dashboard.pages.test_browse import record

NOW_MS: Final = 1_700_000_000_000


def searching(**texts: str) -> MessageSearch:
    return MessageSearch(topic="t", texts=FilterTexts(**texts))


def tail_of(search: MessageSearch) -> Tail:
    return Tail(search, Decoder("t"), now_ms=NOW_MS)


def look_for(tail: Tail, **texts: str) -> None:
    tail.look_for(searching(**texts), Decoder("t"), now_ms=NOW_MS)


def accepted(tail: Tail, each: FetchedRecord) -> bool:
    return bool(looked_for([each], tail.looking.accepts, tail.looking.matching))


def test_another_filter_keeps_what_it_takes_of_what_is_shown() -> None:
    tail = tail_of(searching())
    assert tail.take([record(0, b"red"), record(1, b"green"), record(2, b"red and green")])
    assert (tail.found, tail.seen) == (3, 3)
    look_for(tail, text="red")
    assert [each.offset for each in tail.newest] == [0, 2]
    assert not accepted(tail, record(3, b"green"))
    look_for(tail, text="green")
    assert accepted(tail, record(3, b"green"))
    assert [each.offset for each in tail.newest] == [2]


def test_records_that_are_not_looked_for_are_counted_and_old_ones_give_way() -> None:
    tail = tail_of(searching(text="red"))
    assert tail.take([Passed(offset=0, timestamp_ms=0, last_offset=2)])
    assert (tail.found, tail.seen) == (0, 3)
    assert tail.take([record(number, b"red") for number in range(KEPT_MAX + 5)])
    assert tail.take([Notice(text="a leader died", is_trouble=True)])
    assert not tail.take([])
    assert (tail.found, len(tail.newest), next(iter(tail.newest)).offset) == (
        KEPT_MAX + 5,
        KEPT_MAX,
        5,
    )
    assert [notice.text for notice in tail.notices] == ["a leader died"]


def test_a_filter_that_cannot_be_used_is_told_and_the_former_stays() -> None:
    tail = tail_of(searching(text="red"))
    look_for(tail, regex="(red")
    assert tail.notices[-1].text.startswith("regex: '(red': missing )")
    assert accepted(tail, record(0, b"red"))
    assert not accepted(tail, record(1, b"green"))


def test_a_time_that_ends_a_search_is_a_filter_of_what_comes_too() -> None:
    tail = tail_of(MessageSearch(topic="t", until=str(NOW_MS)))
    at = [replace(record(0, b"x"), timestamp_ms=NOW_MS + late) for late in (-1, 0, 1, -2)]
    assert [accepted(tail, each) for each in at] == [True, False, False, True]


def test_a_tab_says_what_it_wants() -> None:
    assert asked_of("{}", "t") == Asked(search=MessageSearch(topic="t"))
    told = asked_of('{"query": {"partition": " 3", "q": "red "}, "do": "read", "again": true}', "t")
    search = MessageSearch(topic="t", partition="3", texts=FilterTexts(text="red"))
    assert told == Asked(search=search, do="read", is_again=True)
    for words in ("[]", "3", '{"query": 3}'):
        with pytest.raises(ValueError, match="as a JSON object"):
            asked_of(words, "t")
    with pytest.raises(ValueError, match="a tab asks for 'dance'"):
        asked_of('{"do": "dance"}', "t")
