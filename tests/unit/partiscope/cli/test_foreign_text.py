"""Names that others chose, on the command line: no terminal obeys them, and JSON has them whole."""

import json
import time
from pathlib import Path
from typing import Any, Final

import pytest

from partiscope.cli.app import run
from partiscope.running import say
from tests.support.cases import case
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows

ESCAPE: Final = "\x1b]0;title\x07\x1b[2Jevil\u202e\r\n✔ nothing is wrong"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store in which every name of a group, rack, host, client or cluster is a sequence of
    escapes."""
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path))
    at_ms = time.time_ns() // 1_000_000
    sizes = SyntheticSizes(topics=3, partitions=4, groups=6)
    rows = synthetic_rows(sizes, at_ms=at_ms)
    for table in rows.values():
        for row in table:
            for name in ("group_id", "rack", "client_id", "member_id", "host", "coordinator"):
                if isinstance(row.get(name), str):
                    row[name] += ESCAPE
    StoreBuilder(tmp_path / "store").write(rows)
    return str(tmp_path / "store")


COMMANDS: Final = (
    ("status",), ("groups", "list"), ("brokers",), ("brokers", "describe", "101"), ("partitions",),
    ("partitions", "describe", "topic-0", "0"), ("what-if", "--broker", "101"), ("clusters",),
    ("what-if", "--rack", f"rack-a{ESCAPE}"), ("doctor",),
)  # fmt: skip


def test_no_command_writes_what_a_terminal_obeys(
    hostile: str, tmp_path: Path, capsys: Capture
) -> None:
    seen = 0
    for words in COMMANDS:
        with case(*words):
            store = () if words[0] in {"doctor", "groups"} else ("--store", hostile)
            run([*words, *store])
            told = capsys.readouterr()
            _assert_inert(told.out + told.err)
            seen += "evil" in told.out
            if words[0] in {"status", "what-if"} and run([*words, *store, "--json"]) in (0, 5):
                document = capsys.readouterr().out
                assert ESCAPE in "".join(_strings(json.loads(document)))
                _assert_inert(document)
    assert seen >= 4


def _strings(document: Any) -> list[str]:
    parts = list(document.values()) if isinstance(document, dict) else document
    if isinstance(document, str):
        return [document]
    return [it for part in parts for it in _strings(part)] if isinstance(parts, list) else []


def test_files_of_a_plan_are_text(tmp_path: Path, capsys: Capture) -> None:
    brokers = [{"id": n, "rack": f"{n}{ESCAPE}"} for n in (1, 2)]
    partitions = [{"topic": "t", "partition": n, "replicas": [1, 2], "size": 9} for n in (0, 1)]
    topology, plan = tmp_path / "topology.json", tmp_path / f"plan{ESCAPE[:15]}"
    topology.write_text(json.dumps({"brokers": brokers, "partitions": partitions}))
    plan.write_text('{"partitions": [{"topic": "t", "partition": 0, "replicas": [2, 1]}]}')
    for words in (
        ("plan", "--topology", str(topology), "--remove-brokers", "2"),
        ("plan", "--topology", str(topology), "--require-racks"),
        ("check", str(plan), "--topology", str(topology)),
    ):
        with case(*words):
            run(list(words))
            told = capsys.readouterr()
            _assert_inert(told.out + told.err)


def test_what_up_says_is_text(capsys: Capture) -> None:
    """It quotes the end of a log, in which names of a cluster may stand."""
    say(f"collector ended: {ESCAPE}")
    told = capsys.readouterr().out
    _assert_inert(told)


def _assert_inert(text: str) -> None:
    assert [it for it in text if not it.isprintable() and it not in "\n\t"] == []
    assert not [line for line in text.splitlines() if line.startswith("✔ nothing")]
