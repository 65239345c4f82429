"""Tables on a terminal and in a pipe, with names as long and odd as a cluster takes them."""

import asyncio
import os
import pty
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ
from typing import Final

import pytest
from rich.cells import cell_len

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.kafka.records.producer import OutgoingRecord, RecordProducer
from control.model.ids import TopicPartition
from partiscope.cli.app import run
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S
from tests.support.piped import odd_cells

LONG: Final = "prod.orders." + "x" * 182 + ".ending"
WIDE: Final = "billing-注文処理🚀-" * 8 + "終"
EVIL: Final = "\x1b[2J\x1b[31mevil\x07\t" + "y" * 150
PAINT: Final = re.compile(r"\x1b\[\d+m")
PROSE: Final = ("▲", "◆", "✔", "✖", "/")
"""So begin lines that are sentences or paths, which a terminal may wrap."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Where the odd names are."""

    at: LocalCluster
    plan: Path

    def commands(self) -> dict[str, tuple[str, ...]]:
        """All that show tables of a cluster without figures."""
        (log,) = self.at.base_dir.rglob(f"{LONG}-0")
        return {
            "topics": ("topics", "list"),
            "topic": ("topics", "describe", LONG),
            "altered": ("topics", "alter", LONG, "--config", f"retention.ms={9**18}", "--dry-run"),
            "groups": ("groups", "list"),
            "wide group": ("groups", "describe", WIDE),
            "evil group": ("groups", "describe", EVIL),
            "reset": ("groups", "alter", WIDE, "--topic", LONG, "--to", "earliest", "--dry-run"),
            "configs": ("configs", "list"),
            "config": ("configs", "describe", LONG),
            "plan": ("plan", "--topics", LONG),
            "by hand": ("plan", "--edit", str(self.plan)),
            "preview": ("reassign", str(self.plan), "--dry-run"),
            "segments": ("segments", LONG, "0", "--index", "--log-dir", str(log.parent)),
            "forecast": ("produce", LONG, "--key", "uniform:9", "--count", "100", "--preview"),
        }


async def _fill(bootstrap: str) -> None:
    key = TopicPartition(LONG, 0)
    async with KafkaAdmin.to(bootstrap) as admin, RecordProducer(bootstrap) as producer:
        configs = {"cleanup.policy": "compact,delete", "retention.ms": "987654321012"}
        topic = NewTopic(name=LONG, partitions=3, replication_factor=1, configs=configs)
        await admin.create_topic(topic)
        await producer.send(OutgoingRecord(topic=LONG, partition=0, key=b"k", value=b"1"))
        for group in (WIDE, EVIL):
            await admin.groups.commit_offsets(group, {key: 1})


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("widths")
    plan = folder / "plan.json"
    plan.write_text(
        f'{{"version": 1, "partitions": [{{"topic": "{LONG}", "partition": 0,'
        ' "replicas": [102, 103]}]}'
    )
    with LocalCluster(folder / "cluster") as cluster:
        asyncio.run(_fill(cluster.bootstrap))
        yield Cluster(at=cluster, plan=plan)


Shown = Callable[..., list[str]]


@pytest.fixture
def shown(
    filled: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Shown:
    """Runs a command on a terminal of that width; its lines, or those of a pipe."""
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path))
    for name in ("BOOTSTRAP", "BUS"):
        monkeypatch.setenv(f"PARTISCOPE_{name}", filled.at.bootstrap)
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def lines(words: tuple[str, ...], width: int | None) -> list[str]:
        if width is None:
            assert run(list(words)) == 0
            return capsys.readouterr().out.splitlines()
        return _on_terminal(monkeypatch, words, width)

    return lines


def _on_terminal(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], width: int) -> list[str]:
    master, slave = pty.openpty()
    ioctl(slave, TIOCSWINSZ, pack("HHHH", 24, width, 0, 0))
    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patch:
        reading = pool.submit(_read_all, master)
        with open(slave, "w", encoding="utf-8") as terminal:
            for name in ("stdout", "__stdout__"):
                patch.setattr(sys, name, terminal)
            status = run(list(words))
        written = reading.result(WAIT_S)
    os.close(master)
    assert status == 0
    return [PAINT.sub("", line) for line in written.decode().splitlines()]


def _read_all(master: int) -> bytes:
    read = b""
    while True:
        try:
            read += os.read(master, 65536)
        except OSError:  # the other end is closed
            return read


def _tables(lines: list[str]) -> list[str]:
    """Without what are sentences: those of a preview stand below its brokers."""
    sentence = next(
        (at for at, line in enumerate(lines) if line.startswith("to move:")), len(lines)
    )
    tables = [line for line in lines[:sentence] if not line.startswith((*PROSE, "→"))]
    return [line for line in tables if "offset → position" not in line]


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_a_terminal(filled: Cluster, shown: Shown, width: int) -> None:
    for name, words in filled.commands().items():
        lines = _tables(shown(words, width))
        if name not in ("segments", "config"):
            assert len(lines) > 1, name
        too_wide = [line for line in lines if cell_len(line) > width]
        assert not too_wide, (name, too_wide)
        assert all(line.isprintable() for line in lines), name


def test_names_are_shortened_in_the_middle_as_far_as_they_must(
    filled: Cluster, shown: Shown
) -> None:
    words = filled.commands()["topics"]
    for width in (80, 120):
        (row,) = [line for line in shown(words, width) if line.startswith("prod.orders.")]
        name, *figures = row.split()
        assert name.endswith(".ending")
        assert "…" in name
        assert figures == ["3", "1"]
        assert cell_len(row) == width, "all the room is used"


def test_a_pipe_has_every_column_and_whole_names(filled: Cluster, shown: Shown) -> None:
    commands = filled.commands()
    for name, words in commands.items():
        lines = _tables(shown(words, None))
        assert "…" not in "".join(lines), name
        assert not odd_cells(lines), name
    table = [line.split("\t") for line in shown(commands["topic"], None)[-4:]]
    isr = table[0].index("isr")
    assert all(cells[isr].isdecimal() for cells in table[1:]), "ids: it has one replica"
    assert any(line.startswith(f"{LONG}\t") for line in shown(commands["topics"], None))
    heads = shown(commands["plan"], None)[0].split("\t")
    assert {"least_moves", "least_bytes", "leads"} <= set(heads)
    wide, narrow = shown(commands["wide group"], None), shown(commands["wide group"], 80)
    assert "committed" in wide[0].split("\t")
    assert len(wide[1].split("\t")) == len(wide[0].split("\t"))
    assert cell_len(narrow[1]) <= 80


def test_a_pipe_fits_where_somebody_says_its_width(
    filled: Cluster, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for name, words in filled.commands().items():
        lines = _tables(shown(words, None))
        assert [line for line in lines if cell_len(line) > 60] == [], name


def test_what_is_left_out_is_named(
    filled: Cluster, shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    lines = shown(filled.commands()["by hand"], 60)
    told = capsys.readouterr().err
    assert "least bytes" not in lines[0]
    assert re.search(r"no room for: .*least bytes.* .*--json", told)
