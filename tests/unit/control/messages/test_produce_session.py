"""Key rules, forecasts, key choosers, templates."""

import warnings
from collections import Counter

import numpy as np
import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st

from control.messages.forecast import forecast, keys_to_preview, moving_words
from control.messages.keys import KeySpecError, from_list, parse_keys, zipf_weights
from control.messages.lines import LINES_MAX, LinesError, lines_of, records_of
from control.messages.partitioners import KeyRule, fnv1a, murmur2, partition_for, partitions_for_key
from control.messages.produce_progress import histogram_of, latencies_of
from control.messages.templates import Template, TemplateError

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner.default import murmur2 as kafka_python_murmur2


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@given(st.binary(max_size=64))
def test_murmur2_is_that_of_two_clients(data: bytes) -> None:
    assert murmur2(data) == aiokafka_murmur2(data) & 0xFFFFFFFF
    assert murmur2(data) == kafka_python_murmur2(data) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_that_of_kafkas_own_test(data: bytes, signed: int) -> None:
    assert murmur2(data) == signed & 0xFFFFFFFF


def test_fnv1a_reference_values() -> None:
    assert (fnv1a(b""), fnv1a(b"a"), fnv1a(b"foobar")) == (0x811C9DC5, 0xE40C292C, 0xBF9CF968)


def test_the_users_of_the_book_land_where_they_really_land() -> None:
    users = (b"User123", b"User456", b"User789")
    hits = [partitions_for_key(user, 3) for user in users]
    assert [hit[KeyRule.MURMUR2] for hit in hits] == [1, 0, 0]
    assert [hit[KeyRule.CRC32] for hit in hits] == [0, 2, 2]


def test_no_key_no_rule() -> None:
    assert partitions_for_key(None, 3) == dict.fromkeys(KeyRule, None)
    assert partition_for(KeyRule.CRC32, b"", 3) is None
    with pytest.raises(ValueError, match="at least one partition"):
        partition_for(KeyRule.CRC32, b"x", 0)


def test_a_forecast_adds_up() -> None:
    keys = [b"hot"] * 60 + [b"k%d" % n for n in range(30)] + [None] * 10
    found = forecast(keys, partitions=4, rule=KeyRule.MURMUR2)
    assert (found.total, found.unkeyed, found.distinct_keys) == (90, 10, 31)
    assert found.skew == pytest.approx(max(found.records) / 22.5 - 1)
    assert forecast([], partitions=2, rule=KeyRule.CRC32).skew == 0.0


@pytest.mark.parametrize("rule", KeyRule)
def test_a_forecast_names_the_keys_that_move(rule: KeyRule) -> None:
    keys = keys_to_preview("order-{n}")
    assert (len(keys), keys[7]) == (10_000, b"order-7")

    found = forecast(keys, partitions=4, rule=rule, then=6)

    expected = {
        key: (partition_for(rule, key, 4), partition_for(rule, key, 6))
        for key in keys
        if partition_for(rule, key, 4) != partition_for(rule, key, 6)
    }
    assert {move.key: (move.now, move.then) for move in found.moves} == expected
    assert found.records_then == tuple(
        sum(partition_for(rule, key, 6) == number for key in keys) for number in range(6)
    )
    first = found.moves[0]
    words = f"{len(expected):,} of 10,000 keys move, such as {first.key.decode()} "
    assert moving_words(found).startswith(f"{words}{first.now} → {first.then}, ")


def test_keys_to_preview_of_a_fixed_key_are_numbered_ones() -> None:
    assert keys_to_preview("user") == keys_to_preview(None) == keys_to_preview("seq")
    assert len(set(keys_to_preview("uniform:5"))) == 5


def test_zipf_keys_are_hot_in_order() -> None:
    weights = zipf_weights(100, 1.0)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] == pytest.approx(2 * weights[1])
    choose = parse_keys("zipf:100:1.3", rng())
    counts = Counter(choose(n) for n in range(20_000))
    assert counts.most_common(1)[0][0] == b"k-0"
    assert counts[b"k-0"] > 5 * counts[b"k-9"]
    choose = parse_keys("uniform:10", rng())
    even = Counter(choose(n) for n in range(10_000))
    assert len(even) == 10
    assert max(even.values()) < 1.2 * min(even.values())


def test_other_keys() -> None:
    assert parse_keys(None, rng())(3) is None
    assert parse_keys("none", rng())(3) is None
    assert parse_keys("seq", rng())(3) == b"k-3"
    assert parse_keys("user-{n}", rng())(3) == b"user-3"
    assert parse_keys("plain", rng())(3) == b"plain"
    assert [from_list([b"a", None])(n) for n in range(3)] == [b"a", None, b"a"]


@pytest.mark.parametrize("spec", ["zipf:0", "zipf:x", "uniform:99999999", "zipf:5:x", "zipf:5:99"])
def test_bad_key_descriptions_are_refused(spec: str) -> None:
    with pytest.raises(KeySpecError):
        parse_keys(spec, rng())


def test_templates_fill_what_they_know_and_leave_json_alone() -> None:
    template = Template('{"n": {n}, "k": "{key}", "x": {other}, "p": "{pad:3}"}', rng())
    assert (
        template.render(n=5, key=b"a", now_ms=0) == b'{"n": 5, "k": "a", "x": {other}, "p": "xxx"}'
    )
    moment = Template("{ms} {now}", rng()).render(n=0, key=None, now_ms=1500)
    assert moment == b"1500 1970-01-01T00:00:01.500Z"
    dice = {Template("{random:1-3}", rng()).render(n=0, key=None, now_ms=0)}
    assert dice <= {b"1", b"2", b"3"}
    first, second = (Template("{uuid}", rng()).render(n=n, key=None, now_ms=0) for n in (0, 1))
    assert len(first) == 36
    assert first != second
    assert Template("plain", rng()).render(n=0, key=None, now_ms=0) == b"plain"


@pytest.mark.parametrize("text", ["{random:5-1}", "{pad:99999999999}"])
def test_impossible_templates_are_refused(text: str) -> None:
    with pytest.raises(TemplateError):
        Template(text, rng())


def test_latencies_and_their_histogram() -> None:
    values = [float(n) for n in range(1, 101)]
    found = latencies_of(values)
    assert found is not None
    assert (found.p50_ms, found.max_ms) == (50.5, 100.0)
    histogram = histogram_of(values)
    assert sum(count for _, count in histogram) == 100
    assert dict(histogram)[4.0] == 2
    assert latencies_of([]) is None
    assert histogram_of([]) == ()


def test_a_line_is_a_key_and_a_value_or_a_value() -> None:
    lines = lines_of(b"k\tv\twith tab\nonly value\r\n\n", "a.txt")
    assert records_of(lines) == ((b"k", b"v\twith tab"), (None, b"only value"), (None, b""))


@pytest.mark.parametrize("data", [b"", b"x\n" * (LINES_MAX + 1)])
def test_a_file_of_too_few_or_too_many_lines_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(LinesError, match=r"a\.txt has .* lines; 1 to 1,000,000"):
        lines_of(data, "a.txt")
