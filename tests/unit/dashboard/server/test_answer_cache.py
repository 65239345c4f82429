"""What many ask is answered once, and kept up to so many bytes."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pyarrow as pa
import pytest
from dash import html

from dashboard.server.answer_cache import AnswerCache, bytes_of
from tests.support.patience import WAIT_S


def test_many_who_ask_at_once_get_one_answer() -> None:
    answers, built, may_end = AnswerCache(1 << 20), list[int](), Event()

    def build() -> list[int]:
        may_end.wait(WAIT_S)
        built.append(1)
        return built

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(answers.of, "key", build) for _ in range(8)]
        may_end.set()
        found = [item.result(WAIT_S) for item in asked]
    assert built == [1]
    assert all(item is built for item in found)


def test_a_failure_is_told_to_all_who_wait_and_not_kept() -> None:
    answers = AnswerCache(1 << 20)

    def fail() -> int:
        waiting, is_new = answers.expect("key")
        assert not is_new
        waiting.add_done_callback(lambda it: told.append(it.exception()))
        raise ValueError("once")

    told: list[BaseException | None] = []
    with pytest.raises(ValueError, match="once"):
        answers.of("key", fail)
    assert [str(error) for error in told] == ["once"]
    assert answers.of("key", lambda: 7) == 7


def test_the_bytes_of_all_answers_are_bounded_and_the_newest_stays() -> None:
    answers = AnswerCache(30_000)
    pending, _ = answers.expect("on its way")
    for number in range(50):
        answers.of(number, lambda: "x" * 1_000)
        answers.of(0, lambda: "asked for all the time, but too long ago" * 100)
        assert answers.size_bytes <= 30_000
    assert answers.of(49, lambda: "made anew") == "x" * 1_000
    assert answers.of(10, lambda: "made anew") == "made anew"
    large = answers.of("large", lambda: "x" * 100_000)
    assert answers.of("large", lambda: "made anew") is large
    answers.of("small", lambda: "x")
    assert answers.size_bytes < 5_000
    answers.settle("on its way", 7)
    assert pending.result(0) == 7


def test_columns_texts_and_components_are_counted() -> None:
    table = pa.table({"size": np.arange(10_000)})
    assert bytes_of(table) == pytest.approx(80_000, rel=0.05)
    view = html.Div([html.P("x" * 500) for _ in range(100)], className="all")
    assert bytes_of(view) < 100_000
    assert bytes_of(html.Div([html.P("x" * 500 + str(n)) for n in range(100)])) > 50_000
    assert bytes_of([table, {"again": table}]) == pytest.approx(80_000, rel=0.05)
