"""`produce` from standard input and files, on ours and on Kafka: what lands, and what is told."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.kafka.records.reader import FetchedRecord, RecordReader, Start, StartKind
from tests.contract.operations_rig import unique, variants
from tests.support.node_cluster import ROOT
from tests.support.patience import WAIT_S, patience_s
from tests.support.phrases import lacking

PARTITIONS = 3


@pytest.fixture
async def topic(admin: KafkaAdmin) -> str:
    name = unique("lines")
    await admin.create_topic(NewTopic(name=name, partitions=PARTITIONS, replication_factor=1))
    return name


class Typed:
    """``partiscope produce TOPIC …`` with a pipe on its standard input."""

    def __init__(
        self, bootstrap: str, folder: Path, topic: str, *, command: str = "produce"
    ) -> None:
        self._words = (sys.executable, "-m", "partiscope", command, topic)
        self._folder = folder
        self._env = {**os.environ, "PYTHONPATH": str(ROOT), "PARTISCOPE_BOOTSTRAP": bootstrap}

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            (*self._words, *words), cwd=self._folder, env=self._env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, given: bytes, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        out, err = process.communicate(given, timeout=WAIT_S)
        assert "Traceback" not in err.decode()
        return process.returncode, out.decode(), err.decode()


@pytest.fixture
def typed(bootstrap: str, tmp_path: Path, topic: str) -> Typed:
    return Typed(bootstrap, tmp_path, topic)


async def _records(bootstrap: str, topic: str) -> list[FetchedRecord]:
    async with RecordReader(bootstrap) as reader:
        keys = await reader.partitions(topic)
        found = await reader.browse(keys, Start(kind=StartKind.EARLIEST), limit=1_000)
    return sorted(found.records, key=lambda record: (record.timestamp_ms, record.offset))


async def _contents(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return sorted((r.key or b"", r.value or b"") for r in await _records(bootstrap, topic))


async def test_lines_of_standard_input_are_records(
    bootstrap: str, topic: str, typed: Typed
) -> None:
    status, out, _ = typed.run(b"hello\n")
    assert status == 0
    assert out.startswith(f"{topic}-")
    assert typed.run(b"k:v:w\n\n\xff", "--key-separator", ":", "--file", "-")[0] == 0
    found = await _contents(bootstrap, topic)
    assert found == [(b"", b""), (b"", b"hello"), (b"", b"\xff"), (b"k", b"v:w")]


@pytest.mark.thorough
async def test_with_a_key_the_lines_are_values(bootstrap: str, topic: str, typed: Typed) -> None:
    status, out, err = typed.run(b"a\tb\nc", "--key", "k", "--json")
    assert status == 0, err
    assert await _contents(bootstrap, topic) == [(b"k", b"a\tb"), (b"k", b"c")]
    (landed,) = json.loads(out)["partitions"]
    assert (landed["records"], landed["first_offset"], landed["last_offset"]) == (2, 0, 1)


@pytest.mark.thorough
async def test_json_lines_say_headers_partition_and_time(
    bootstrap: str, topic: str, typed: Typed, tmp_path: Path
) -> None:
    lines: list[dict[str, Any]] = [
        {"value": "v", "partition": 2, "timestamp_ms": 1234567890123,
         "headers": [["a", "1"], ["a", None]]},
        {"key": "k", "value": None, "partition": 0},
    ]  # fmt: skip
    (tmp_path / "lines").write_text("\n".join(map(json.dumps, lines)))
    assert typed.run(b"", "--json-lines", "--file", "lines")[0] == 0
    first, second = await _records(bootstrap, topic)
    assert (first.partition, first.timestamp_ms, first.value) == (2, 1234567890123, b"v")
    assert first.headers == (("a", b"1"), ("a", None))
    assert (second.partition, second.key, second.value) == (0, b"k", None)


UNSENDABLE: tuple[tuple[bytes, tuple[str, ...], str], ...] = (
    (b"", (), "standard input is empty"),
    (b"x", ("--partition", "99"), "has no partition 99 (0–2)"),
    (b'{"partition": 3}', ("--json-lines",), "has no partition 3 (0–2)"),
    (b"x", ("--file", "-", "--value", "v"), "leave --value"),
    (b"", ("--file", "nowhere"), "--file 'nowhere': there is no such file"),
    (b"", ("--file", "."), "--file '.': it is a directory"),
    (b"x", ("-K", r"\q"), r"\q is no escape"),
    (b"x", ("--timestamp", "tomorrow"), "'tomorrow' is no time"),
    (b"x", ("--file", "refused", "--json-lines"), "line 2: "),
)


@pytest.mark.parametrize("bootstrap", [pytest.param("our_cluster", id="ours")], indirect=True)
async def test_what_cannot_be_sent_is_told_and_sends_nothing(
    bootstrap: str, topic: str, typed: Typed, tmp_path: Path
) -> None:
    (tmp_path / "refused").write_text('{"value": 1}\n{"value": 1, "partition": 3}\n')

    async def run(given: bytes, words: tuple[str, ...]) -> tuple[int, str, str]:
        return await asyncio.to_thread(typed.run, given, *words)

    ended = await asyncio.gather(*(run(given, words) for given, words, _ in UNSENDABLE))
    for (status, _, err), (_, _, told) in zip(ended, UNSENDABLE, strict=True):
        assert (status, told in err) == (2, True), err
    assert await _records(bootstrap, topic) == []


@pytest.mark.thorough
async def test_lines_before_a_bad_one_are_told(
    bootstrap: str, topic: str, typed: Typed, tmp_path: Path
) -> None:
    lines = b'{"key": "k", "value": 1}\n{"key": "k", "value": 2}\n{"vale": 3}\n'
    (tmp_path / "lines").write_bytes(lines)
    status, out, err = typed.run(b"", "--json-lines", "--file", "lines")
    assert (status, out, await _records(bootstrap, topic)) == (2, "", [])
    status, out, err = typed.run(lines, "--json-lines")
    assert status == 2
    assert "line 3: unknown field vale;" in err
    assert out.split()[-3] == "2"
    assert len(await _records(bootstrap, topic)) == 2


@pytest.mark.parametrize(
    ("number", "status", "is_json"),
    variants([(signal.SIGINT, 130, False), (signal.SIGTERM, 143, True)]),
)
async def test_lines_go_out_as_they_come_and_ctrl_c_tells_what_was_acknowledged(
    bootstrap: str, topic: str, typed: Typed, number: int, status: int, is_json: bool
) -> None:
    """And what was refused."""
    process = typed.start("--key", "k", *(["--json"] if is_json else []))
    assert process.stdin is not None
    try:
        process.stdin.write(b"x" * (2 << 20) + b"\none\ntwo\nthr")
        process.stdin.flush()
        deadline = time.monotonic() + WAIT_S
        while len(await _records(bootstrap, topic)) < 2:
            assert time.monotonic() < deadline
        await asyncio.sleep(patience_s(0.3))  # nothing outside tells that it heard of the answer
        process.send_signal(number)
        # The writer's end of the pipe stays open: nothing but the signal ends it.
        await asyncio.to_thread(process.wait, WAIT_S)
    finally:
        process.kill()
        out, err = process.communicate()
    assert process.returncode == status, err
    assert lacking(err.decode(), "1 record not acknowledged", "line 1", "max.message.bytes") == []
    if is_json:
        document = json.loads(out)
        assert (document["acked"], document["unanswered"], document["interrupted"]) == (2, 0, True)
        assert (document["sent"], document["failed"]) == (2, 1)
        assert document["partitions"][0]["last_offset"] == 1
    else:
        assert b"interrupted: 2 records acknowledged" in err
        assert out.split()[-3:] == [b"2", b"0", b"1"]


async def test_tail_ends_at_the_end_and_writes_as_it_is_told(
    bootstrap: str, topic: str, typed: Typed, tmp_path: Path
) -> None:
    given = b'{"key": "k", "value": "v", "partition": 1, "headers": [["a", "1"]]}\n'
    given += b'{"value": {"base64": "/wo="}, "partition": 1}\n'
    assert typed.run(given, "--json-lines")[0] == 0
    tail = Typed(bootstrap, tmp_path, topic, command="tail")
    all_of_it = ("--offset", "earliest", "--exit-at-end")
    process = tail.start(*all_of_it, "--format", r"%t|%p|%o|%k|%K|%s|%S|%h|%%\x41\n")
    out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, err) == (0, b"")
    first, second = (f"{topic}|1|{offset}|".encode() for offset in (0, 1))
    assert out == first + b"k|1|v|1|a=1|%A\n" + second + b"NULL|-1|\xff\n|2||%A\n"
    status, told, _ = tail.run(b"", *all_of_it, "--json")
    assert status == 0
    assert typed.run(told.encode(), "--json-lines")[0] == 0  # what is read can be sent again
    assert len(await _records(bootstrap, topic)) == 4
    status, _, err_text = tail.run(b"", *all_of_it, "--format", "%q")
    assert (status, "'%q' means nothing" in err_text) == (2, True)
    status, _, err_text = tail.run(b"", *all_of_it, "--since", "1700000000")
    assert (status, "--since" in err_text) == (2, True)
    status, told, _ = tail.run(b"", "--since", "1700000000", "--exit-at-end", "--count", "1")
    assert (status, told.count("\n")) == (0, 1)
    status, told, err_text = tail.run(b"", *all_of_it, "--filter", "needle")
    assert (status, told) == (0, "")
    (line,) = err_text.splitlines()
    assert "4 records read, no match" in line
