"""The tour by hand, typed line by line: its commands do, and its outputs are, what stands there."""

import subprocess
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from partiscope.cli.app import run
from tests.support.cluster import LocalCluster
from tests.support.documented import block_lines, words_of
from tests.support.node_cluster import ROOT

TOUR: Final = ROOT / "docs" / "start" / "tutorial.md"
UNTIL: Final = "pkill"
"""From there on the tour needs an executor and a broker to kill: operations' tests have both."""
BEFORE: Final = ("make up", "alias")
FOLLOWS: Final = "tail"
"""The reader ends it by Ctrl-C; here it ends with the last record."""
READERS_GROUP: Final = "billing"
PREVIEW: Final = "--preview"


def _shown() -> str:
    """What the document shows of the preview of keys."""
    blocks = TOUR.read_text().split("```")[1::2]
    (shown,) = [block for block in blocks if block.startswith("\npartition  murmur2")]
    return shown.strip()


def test_the_tour_is_as_it_is_told(
    our_cluster: LocalCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARTISCOPE_BOOTSTRAP", our_cluster.bootstrap)
    lines = block_lines(TOUR)
    typed = lines[: next(n for n, line in enumerate(lines) if line.startswith(UNTIL))]
    done = []
    for line in typed:
        if line.startswith(BEFORE):
            continue
        if not line.startswith("partiscope"):
            subprocess.run(["bash", "-c", line], check=True)
            continue
        words = [*words_of(line)]
        if words[0] == "segments":
            words += ["--log-dir", str(our_cluster.log_dir(101))]
        if words[0] == FOLLOWS:
            words.append("--exit-at-end")
        if READERS_GROUP in words:
            _commit(our_cluster.bootstrap)
        status = run(words)
        told = capsys.readouterr()
        assert status == 0, f"{line}\n{told.out}{told.err}"
        done.append(words[0])
        if PREVIEW in words:
            assert (told.out + told.err).strip() == _shown()
        if "--key" in words:
            assert told.err.startswith("murmur2 → 1 · crc32 → 0 · fnv1a → 0"), told.err
    assert done == [
        *("topics", "topics", "produce", "produce", "segments", "segments", "tail"),
        *("groups", "groups"),
    ]
    for what, name in (("groups", READERS_GROUP), ("topics", "user-activity")):
        assert run([what, "delete", name, "--yes"]) == 0


def _commit(bootstrap: str) -> None:
    """As a consumer of the reader's would have."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": READERS_GROUP})
    commit = [TopicPartition("user-activity", 1, 0)]
    consumer.commit(offsets=commit, asynchronous=False)
    consumer.close()
