"""`partiscope produce` against a scripted cluster: odd input is refused whole, and nothing is made
up."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest

from control.kafka.connection import apis
from partiscope.cli.app import run
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking
from tests.unit.control.kafka.scripted_cluster import Asked, ScriptedCluster
from tests.unit.control.messages.test_sessions_of_a_cluster import (
    PRODUCE,
    TOPIC,
    Acknowledging,
    configs,
)

WRONG_USE: Final = 2


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={TOPIC: {0: (1,), 1: (1,), 2: (1,)}}) as found:
        found.on(PRODUCE, Acknowledging())
        limits = {"max.message.bytes": "1000", "cleanup.policy": "compact"}
        found.on(apis.DESCRIBE_CONFIGS, configs({**limits}))
        yield found


def produce(cluster: ScriptedCluster, *words: str) -> int:
    return run(["produce", TOPIC, *words, "--bootstrap", cluster.bootstrap])


def values_sent(cluster: ScriptedCluster) -> int:
    return sum(
        int.from_bytes(bytes(part.records)[57:61], "big")
        for asked in cluster.requests(PRODUCE)
        for topic in asked.message.topic_data
        for part in topic.partition_data
    )


@pytest.mark.parametrize("words", [(), ("--key", "k"), ("--file", "-"), ("--json-lines",)])
def test_closed_standard_input_is_an_error_and_no_record(
    cluster: ScriptedCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert produce(cluster, *words) == WRONG_USE
    assert lacking(capsys.readouterr().err, "standard input is closed", "--value") == []
    assert cluster.requests(PRODUCE) == []
    assert produce(cluster, "--key", "k", "--value", "v") == 0
    assert values_sent(cluster) == 1


BAD_LINES: Final = (
    (b'{"key": "k", "partition": 9}', "no partition 9"),
    (b'{"key": "k", "value": "' + b"x" * 2_000 + b'"}', "max.message.bytes"),
    (b'{"value": "no key"}', "without a key"),
    (b'{"value": null}', "without a key"),
    (b'{"key": "k", "value": NaN}', "NaN"),
    (b'{"key": "k", "partition": 1.0}', "1.0 is no whole number"),
    (b"{", "not JSON"),
    (b"", "not JSON"),
)
GOOD_LINE: Final = b'{"key": "k", "value": 1.10}'


@pytest.mark.parametrize("is_redirected", [False, True])
@pytest.mark.parametrize(("bad", "why"), BAD_LINES)
def test_of_a_file_with_a_bad_line_nothing_is_sent(
    cluster: ScriptedCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    bad: bytes,
    why: str,
    *,
    is_redirected: bool,
) -> None:
    file = tmp_path / "lines"

    def send(*lines: bytes) -> int:
        file.write_bytes(b"\n".join(lines))
        if not is_redirected:
            return produce(cluster, "--json-lines", "--file", str(file))
        with file.open() as opened:
            monkeypatch.setattr(sys, "stdin", opened)
            return produce(cluster, "--json-lines")

    assert send(GOOD_LINE, GOOD_LINE, bad, GOOD_LINE) == WRONG_USE
    assert lacking(capsys.readouterr().err, "line 3", why) == []
    assert cluster.requests(PRODUCE) == []
    assert send(GOOD_LINE, GOOD_LINE) == 0
    assert values_sent(cluster) == 2


def test_a_pipe_that_is_named_is_read_once(
    cluster: ScriptedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines that are refused are told at the end, once."""
    out, into = os.pipe()
    large = b'{"key": "k", "value": "' + b"x" * 2_000 + b'"}'
    os.write(into, b"\n".join([GOOD_LINE, large, GOOD_LINE]))
    os.close(into)
    try:
        assert produce(cluster, "--json-lines", "--file", f"/dev/fd/{out}") == 1
    finally:
        os.close(out)
    told = capsys.readouterr()
    assert lacking(told.err, "2 of 3 acknowledged", "1 failed", "1 record", "line 2") == []
    assert told.err.count("max.message.bytes") == 2  # the kind, and the line
    assert values_sent(cluster) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--timestamp-ms", "-2"), "--timestamp-ms"),
        (("--timestamp-ms", str(1 << 63)), "--timestamp-ms"),
        (("--timestamp-ms", "1764430000"), "1764430000000 if 2025-11-29T15:26:40Z"),
        (("--timestamp-ms", "1764430000123456"), "1764430000123 if 2025"),
        (("--timestamp-ms", "1764430000123456789"), "1764430000123 if 2025"),
        (("--rate", "nan"), "--rate"),
        (("--rate", "inf"), "'inf'"),
        (("--rate", "0"), "--rate"),
        (("--count", "-1"), "--count"),
        (("--partition", "-1"), "--partition"),
        (("--partition", "3"), "no partition 3"),
        (("--header", "a"), "name=value"),
        (("--header", b"\xff=1".decode(errors="surrogateescape")), "UTF-8"),
    ],
)
def test_numbers_out_of_range_are_wrong_use(
    cluster: ScriptedCluster,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    told: str,
) -> None:
    assert produce(cluster, "--key", "k", "--value", "v", *words) == WRONG_USE
    assert told in capsys.readouterr().err
    assert cluster.requests(PRODUCE) == []


@pytest.mark.parametrize("milliseconds", ["-1", "0", "1000", "1764430000000"])
def test_a_time_in_milliseconds_is_taken(cluster: ScriptedCluster, milliseconds: str) -> None:
    sent = ("--key", "k", "--value", "v", "--timestamp-ms", milliseconds)
    assert produce(cluster, *sent) == 0
    assert values_sent(cluster) == 1


def test_bytes_that_are_no_text_are_sent_and_shown_as_typed(cluster: ScriptedCluster) -> None:
    typed = b"caf\xe9".decode(errors="surrogateescape")
    assert produce(cluster, "--key", typed, "--value", typed, "--header", f"h={typed}") == 0
    (asked,) = cluster.requests(PRODUCE)
    sent: Any = bytes(asked.message.topic_data[0].partition_data[0].records)
    assert sent.count(b"caf\xe9") == 3


@pytest.mark.parametrize("words", [("--json",), ("--count", "3"), ()])
def test_an_answer_that_takes_long_is_told_while_it_is_waited_for(
    cluster: ScriptedCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.setattr("control.messages.produce_progress.WAITS_TOLD_S", 0.0)
    is_told, acknowledging = Event(), Acknowledging()
    told: list[str] = []

    def note(text: str) -> None:
        told.append(text)
        is_told.set()

    def late(asked: Asked) -> dict[str, Any]:
        assert is_told.wait(WAIT_S)
        return acknowledging(asked)

    monkeypatch.setattr("partiscope.cli.messages.produce_run.note", note)
    cluster.on(PRODUCE, late)
    assert produce(cluster, "--key", "k", "--value", "v", "--partition", "1", *words) == 0
    wanted = (f"answer of {TOPIC}-1", "given up after 15 s", f"topics describe {TOPIC}")
    assert lacking(told[0], *wanted) == []
    assert [line for line in told[1:] if "given up" in line] == [], "it is told once in a while"
    capsys.readouterr()
