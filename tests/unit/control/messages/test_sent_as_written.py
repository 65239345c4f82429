"""What is sent is what was written: numbers, bytes, names; and what cannot be sent is refused with
an error that the commands know."""

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control.messages.keys import KEYS_MAX, KeySpecError, from_list, parse_keys, zipf_weights
from control.messages.lines import LineFormat, LinesError, lines_of, records_of
from control.messages.starts import parse_start
from control.messages.templates import PAD_BYTES_MAX, Template, TemplateError
from control.operations import checks
from partiscope.cli.messages.produce import _keys_of

JSON = LineFormat(topic="t", is_json=True)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def rendered(text: str, *, key: bytes | None = None, n: int = 0) -> bytes:
    return Template(text, rng()).render(n=n, key=key, now_ms=1_700_000_000_123)


@pytest.mark.parametrize(
    "number",
    ["1.10", "1e400", "-0", "-0.0", "1E+2", "12345678901234567890.123456789", "9" * 5_000, "0.1"],
)
@pytest.mark.parametrize("form", ['{"price":%s}', "[%s]", "%s", '{"a":[{"b":[%s,null,true]}]}'])
def test_a_number_is_sent_with_its_digits(number: str, form: str) -> None:
    value = form % number
    record = JSON.record(b'{"value": %s, "headers": {"h": %s}}' % ((value.encode(),) * 2), 1)
    assert record.value == value.encode()
    assert record.headers == (("h", value.encode()),)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_no_json_has_is_not_sent(constant: str) -> None:
    with pytest.raises(LinesError, match=constant):
        JSON.record(b'{"value": {"n": %s}}' % constant.encode(), 3)
    told_besides = b'{"value": "v", "decoded": {"n": %s}}' % constant.encode()
    assert JSON.record(told_besides, 1).value == b"v"


@pytest.mark.parametrize(
    "line",
    [
        '{"value": "a", "value": "b"}',
        '{"value": {"a": 1, "a": 2}}',
        '{"headers": {"trace": "1", "trace": "2"}}',
        '{"headers": [{"name": "a", "valeu": "x"}]}',
        '{"headers": [{"name": "a", "value": "x", "more": 1}]}',
    ],
)
def test_nothing_of_a_line_is_left_out_in_silence(line: str) -> None:
    with pytest.raises(LinesError, match="line 9"):
        JSON.record(line.encode(), 9)


@pytest.mark.parametrize("name", ["partition", "timestamp_ms"])
@pytest.mark.parametrize(
    "number", ["-2", "1.0", "1e3", "9" * 30, "9" * 5_000, "true", '"3"', "[3]", "NaN"]
)
def test_a_number_of_a_record_is_whole_and_fits(name: str, number: str) -> None:
    with pytest.raises(LinesError):
        JSON.record(f'{{"{name}": {number}}}'.encode(), 1)


@pytest.mark.parametrize(
    "value",
    [
        '{ "name" : "Ann \\u00e9" }',
        '{"a": "\\ud83d\\ude00 \\ud800 \\/ \\u0000"}',
        '[1.10, {"b":  -0}, "\\t"]',
        '{"value": "inner", "key": {"value": 1}}',
        '{"a}": "}\\"{", "b": []}',
        "true",
    ],
)
def test_json_is_sent_as_it_is_written(value: str) -> None:
    lines = (
        f'{{"value": {value}}}',
        f' {{ "key"\t:\t{value} , "headers": [["h", {{"value": 0}}]], "value":{value} }} ',
        f'{{"decoded": {{"value": [{value}]}}, "va\\u006cue": {value}, "partition": 0}}',
    )
    for line in lines:
        record = JSON.record(line.encode(), 1)
        assert record.value == value.encode()
        assert record.key in (None, value.encode())


def test_the_largest_numbers_fit() -> None:
    record = JSON.record(b'{"partition": 2147483647, "timestamp_ms": 9223372036854775807}', 1)
    assert (record.partition, record.timestamp_ms) == (2**31 - 1, 2**63 - 1)
    assert JSON.record(b'{"partition": null, "timestamp_ms": 0}', 1).timestamp_ms == 0
    assert JSON.record(b'{"timestamp_ms": -1}', 1).timestamp_ms == -1
    with pytest.raises(LinesError, match="partition -1"):
        JSON.record(b'{"partition": -1}', 1)


_JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(_JSON_VALUES)
def test_any_document_is_sent_as_itself(document: object) -> None:
    record = JSON.record(json.dumps({"value": document}).encode(), 1)
    match document:
        case None:
            assert record.value is None
        case str(text):
            assert record.value == text.encode()
        case {"base64": str(), **rest} if not rest:
            pass
        case _:
            assert record.value is not None
            assert json.loads(record.value) == document
            again = JSON.record(b'{"value": %s}' % record.value, 1)
            assert again.value == record.value


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_line_is_a_record_or_refused(line: bytes) -> None:
    for each in (JSON, LineFormat(topic="t"), LineFormat(topic="t", separator=None)):
        with suppress(LinesError):
            each.record(line, 1)
        assert each is JSON or each.record(line, 1).value is not None


def test_lines_of_a_file_are_counted() -> None:
    assert records_of([b"k\tv", b"v", b"\tv", b"k\t"]) == (
        (b"k", b"v"),
        (None, b"v"),
        (b"", b"v"),
        (b"k", b""),
    )
    with pytest.raises(LinesError, match="0 lines"):
        lines_of(b"", "orders.txt")


@pytest.mark.parametrize(
    "spec",
    ["uniform:²", "uniform:٣", "uniform:0", "uniform:-1", f"uniform:{KEYS_MAX + 1}", "zipf:",
     "uniform:" + "1" * 5_000, "zipf:3:nan", "zipf:3:inf", "zipf:3:11", "zipf:3:-1", "zipf:3:x",
     "zipf:²:1", "half \ud800 a pair", "{n}\ud800"],
)  # fmt: skip
def test_keys_that_cannot_be_made_are_refused_as_such(spec: str) -> None:
    if spec == "zipf:":
        assert parse_keys(spec, rng())(0) == b"zipf:"
        return
    with pytest.raises(KeySpecError):
        parse_keys(spec, rng())(0)


def test_bytes_of_a_command_line_are_sent_as_they_were_typed() -> None:
    typed = b"caf\xe9".decode(errors="surrogateescape")
    assert parse_keys(typed, rng())(0) == b"caf\xe9"
    assert parse_keys(typed + "{n}", rng())(7) == b"caf\xe97"
    assert _keys_of(typed, None) == (b"caf\xe9",)
    assert rendered(typed) == b"caf\xe9"
    assert rendered(typed + "{n}") == b"caf\xe90"
    assert rendered("<{key}>", key=b"caf\xe9") == b"<caf\xe9>"
    assert rendered("<{key}>") == b"<>"


def test_keys_by_description() -> None:
    assert parse_keys(None, rng())(0) is None
    assert parse_keys("none", rng())(0) is None
    assert [parse_keys("seq", rng())(n) for n in (0, 9)] == [b"k-0", b"k-9"]
    keys = parse_keys("uniform:3", rng())
    drawn = [keys(n) for n in range(3_000)]
    assert {key: drawn.count(key) > 850 for key in drawn} == dict.fromkeys(
        (b"k-0", b"k-1", b"k-2"), True
    )
    hot = parse_keys("zipf:100:2", rng())
    drawn = [hot(n) for n in range(3_000)]
    assert 0.5 < drawn.count(b"k-0") / 3_000 < 0.7
    assert drawn.count(b"k-0") > drawn.count(b"k-1") > drawn.count(b"k-3")
    assert [from_list([b"a", None])(n) for n in range(3)] == [b"a", None, b"a"]
    with pytest.raises(KeySpecError):
        from_list([])
    weights = zipf_weights(4, 1.0)
    assert weights.tolist() == pytest.approx([12 / 25, 6 / 25, 4 / 25, 3 / 25])
    assert zipf_weights(1).tolist() == [1.0]


@pytest.mark.parametrize(
    "text",
    ["{random:2-1}", "{random:0-9223372036854775808}", "{random:-9223372036854775809-0}",
     "{random:0-" + "9" * 5_000 + "}", "{random:-" + "9" * 5_000 + "-0}",
     f"{{pad:{PAD_BYTES_MAX + 1}}}", "{pad:" + "9" * 5_000 + "}", "half \ud800 a pair"],
)  # fmt: skip
def test_impossible_numbers_are_refused_before_a_record_is_sent(text: str) -> None:
    with pytest.raises(TemplateError):
        Template(text, rng())


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("{random:0-9223372036854775807}", 0, 2**63 - 1),
        ("{random:-9223372036854775808-9223372036854775807}", -(2**63), 2**63 - 1),
        ("{random:-5--5}", -5, -5),
        ("{random:7-8}", 7, 8),
    ],
)
def test_random_numbers_are_within_both_ends(text: str, low: int, high: int) -> None:
    template = Template(text, rng())
    found = {int(template.render(n=0, key=None, now_ms=0)) for _ in range(50)}
    assert min(found) >= low
    assert max(found) <= high
    assert high - low > 1 or found == {low, high}


def test_what_is_no_placeholder_stays() -> None:
    for text in ('{"n": 1}', "{x}", "{random:1}", "{pad:x}", "{random:²-³}", "{pad:²}", "{}", "{"):
        assert rendered(text) == text.encode()
    assert rendered("{n}{n}", n=12) == b"1212"
    assert rendered("{ms} {now}") == b"1700000000123 2023-11-14T22:13:20.123Z"
    assert rendered("{pad:3}|{pad:0}") == b"xxx|"
    assert len({rendered("{uuid}") for _ in range(5)}) == 5


@pytest.mark.parametrize("text", ["9" * 5_000, "-" + "9" * 5_000, "٣", "-٣", "²", "-²", "", "+3"])
def test_what_is_no_start_is_told_with_what_can_be_written(text: str) -> None:
    with pytest.raises(ValueError, match="earliest"):
        parse_start(text, now_ms=0)


def test_ids_in_digits_that_are_no_numbers_are_refused() -> None:
    assert checks.broker_ids("101,²") is not None
    assert checks.broker_ids("101, 102") is None
