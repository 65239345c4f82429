"""Conditions that run for long: their process ends, with the record at which it was."""

import threading

import pytest

from control.messages.conditions import process, worker
from control.messages.message_filters import FilterTexts, build_filter
from control.messages.patterns import FilterError
from tests.support.patience import WAIT_S
from tests.unit.control.messages.test_any_filter import record

LONG = b"[" + b",".join(b"%d" % number for number in range(50_000)) + b"]"
DEEP = (b"[" + b"1, " * 40) * 50 + b"1" + b"]" * 50
SLOW = {
    "a nested loop": {"cel": "value.all(x, value.all(y, x + y > -1))"},
    "behind a raw string": {"cel": r"value.all(x, r'\' == '' || value.all(y, x + y > -1))"},
    "behind a comment": {"cel": "value.// )\nall(x, value.all(y, x + y > -1))"},
    "a search in each turn": {"cel": "value.all(x, !(-1 - x in value))"},
}


@pytest.mark.parametrize("texts", SLOW.values(), ids=[*SLOW])
def test_a_condition_that_takes_too_long_ends_its_search_and_names_the_record(
    texts: dict[str, str],
) -> None:
    quick = [record(b"[1, 2]")] * 3
    with build_filter(FilterTexts(**texts)) as tested, pytest.raises(FilterError) as told:
        tested.passing([*quick, record(LONG), *quick])
    assert told.value.field in texts
    for words in (f"longer than {worker.ROW_CPU_S:g} s", "partition 3", f"offset {2**53 + 1}"):
        assert words in str(told.value)


def test_a_path_that_takes_too_long_ends_its_search() -> None:
    path = "$..[?count(@..[?count(@..[?count(@..*) >= 0]) >= 0]) < 0]"
    with pytest.raises(FilterError, match=r"json path: .* longer than"):
        build_filter(FilterTexts(json_path=path)).passing([record(DEEP)])


def test_the_next_search_has_a_process_of_its_own() -> None:
    with pytest.raises(FilterError):
        build_filter(FilterTexts(**SLOW["a nested loop"])).passing([record(LONG)])
    assert build_filter(FilterTexts(cel="value[0] == 0")).passing([record(LONG)])


def test_a_condition_that_takes_too_much_memory_ends_its_process_alone() -> None:
    doubled = "[value].map(a, a + a)" + ".map(a, a + a)" * 20
    with pytest.raises(FilterError, match=r"2 GiB|longer than"):
        build_filter(FilterTexts(cel=f"{doubled} == []")).passing([record(LONG)])


def test_what_is_judged_ends_with_its_search() -> None:
    """Each record is judged within its bound, all of them not for an hour."""
    told: list[BaseException] = []
    tested = build_filter(FilterTexts(cel="value.all(x, value.all(y, x + y > -1))"))
    slow = record(b"[" + b"1," * 400 + b"1]")

    def judge() -> None:
        try:
            tested.passing([slow] * 1_000_000)
        except FilterError as error:
            told.append(error)

    thread = threading.Thread(target=judge)
    thread.start()
    while tested.conditions is None or not tested.conditions._is_asking:
        assert thread.is_alive()
    tested.close()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert told


def test_a_loop_in_a_loop_over_little_is_taken() -> None:
    tested = build_filter(FilterTexts(cel="value.all(x, value.all(y, x == y))"))
    assert tested.passing([record(b"[1, 1]"), record(b"[1, 2]")]) == [record(b"[1, 1]")]


def test_no_secret_of_the_environment_reaches_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTISCOPE_PASSWORD", "hunter2")
    process._end_idle()
    tested = build_filter(FilterTexts(cel="size > 3"))
    assert tested.conditions is not None
    assert tested.conditions._worker is not None
    pid = tested.conditions._worker._process.pid
    with open(f"/proc/{pid}/environ", "rb") as file:
        assert b"hunter2" not in file.read()


def test_many_records_of_any_size_are_judged_in_their_order() -> None:
    tested = build_filter(FilterTexts(cel="offset > 0 && value.n > 2", json_path="$.n"))
    each = [
        record(b'{"n": %d, "text": "%s"}' % (n % 5, b"x" * (n % 7) * 4_000)) for n in range(5_000)
    ]
    found = tested.passing([*each, record(b"no JSON"), record(b"[]")])
    assert found == [it for it in each if it.value and it.value[6] > ord("2")]
    assert tested.unjudged_count == 1
    assert tested.unjudged_reason.startswith("json path: Expecting value")
