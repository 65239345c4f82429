"""Records that are kept of a topic that is followed."""

from control.kafka.records.newest import NewestRecords, share_words
from tests.support.phrases import lacking
from tests.unit.dashboard.pages.test_browse import record


def test_bytes_and_number_of_records_are_bounded_and_the_newest_stay() -> None:
    newest = NewestRecords(count_max=3, bytes_max=100)
    for number in range(5):
        newest.append(record(number, b"x" * 10))
    assert [each.offset for each in newest] == [2, 3, 4]
    newest.append(record(5, b"x" * 60))
    newest.append(record(6, b"x" * 60))
    assert [each.offset for each in newest] == [6]
    newest.append(record(7, b"x" * 1_000))
    assert [each.offset for each in newest] == [7]
    assert newest.bytes >= 1_000
    newest.append(record(8, b"x"))
    assert [each.offset for each in newest] == [8]


def test_the_share_that_was_shown_is_told_anew_each_time() -> None:
    newest = NewestRecords(count_max=100)
    for number in range(25_000):
        newest.append(record(number, b"x"))
    share = newest.share()
    assert share == 250
    assert not lacking(share_words(share), "too fast", "1 of 250")
    assert share_words(newest.share()) == ""
    newest.append(record(25_000, b"x"))
    assert newest.share() == 1
