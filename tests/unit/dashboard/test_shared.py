"""What several browsers ask is computed once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from dashboard.shared import ANSWERS_MAX, Shared


def test_many_who_ask_at_once_get_one_answer() -> None:
    shared, built, may_end = Shared(), list[int](), Event()

    def build() -> list[int]:
        may_end.wait(60)
        built.append(1)
        return built

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(shared.of, "key", build) for _ in range(8)]
        may_end.set()
        answers = [item.result(60) for item in asked]
    assert built == [1]
    assert all(item is built for item in answers)


def test_a_failure_is_not_kept_and_answers_are_bounded() -> None:
    shared = Shared()

    def fail() -> int:
        raise ValueError("once")

    try:
        shared.of("key", fail)
    except ValueError:
        assert shared.of("key", lambda: 7) == 7
    for number in range(ANSWERS_MAX):
        shared.of(number, lambda: 0)
    assert shared.of("key", lambda: 8) == 8
