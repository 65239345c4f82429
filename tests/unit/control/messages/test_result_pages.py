"""Pages of results: back and on, numbers, and what is forgotten."""

from control.kafka.records.browsing import Browsed, Skipped
from control.kafka.records.record import FetchedRecord
from control.messages.result_pages import ResultPages
from control.model.ids import TopicPartition
from control.views.tables.messages import shown_words
from tests.snapshots.canned import records

REST = {TopicPartition("orders", 0): 5}


def page(count: int, *, is_last: bool = False) -> Browsed:
    found: list[FetchedRecord] = [records()[0]] * count
    return Browsed(records=tuple(found), read_count=count, read_bytes=0, skipped=Skipped(),
                   rest={} if is_last else REST, is_backward=True)  # fmt: skip


def test_pages_are_numbered_from_the_first_record() -> None:
    pages = ResultPages()
    pages.add(page(1, is_last=True))
    assert shown_words(pages) == "1 record shown"
    pages.clear()
    for count, is_last, words in ((100, False, "1–100"), (100, False, "101–200"), (1, True, "201")):
        pages.add(page(count, is_last=is_last))
        assert shown_words(pages) == f"{words} shown"
    assert not pages.has_next
    assert pages.previous()
    assert pages.previous()
    assert (shown_words(pages), pages.has_previous, pages.has_next) == ("1–100 shown", False, True)
    assert not pages.previous()
    assert pages.next()
    assert pages.next()
    assert not pages.next(), "what was not read yet is to be read"


def test_a_page_without_results_is_replaced_by_the_next() -> None:
    pages = ResultPages()
    for count in (0, 0, 7, 0):
        pages.add(page(count))
    assert pages.previous()
    assert shown_words(pages) == "1–7 shown"
    assert not pages.has_previous


def test_first_pages_are_forgotten_beyond_the_bytes_that_may_be_kept() -> None:
    one = page(10)
    size = sum(len(it.key or b"") + len(it.value or b"") for it in one.records)
    pages = ResultPages(bytes_max=3 * size)
    for _ in range(5):
        pages.add(page(10))
    assert shown_words(pages) == "41–50 shown"
    went_back = 0
    while pages.previous():
        went_back += 1
    assert 1 <= went_back <= 2
    assert shown_words(pages) == f"{41 - 10 * went_back}–{50 - 10 * went_back} shown"
