"""Each exit status of docs/reference/command-line.md, and times with their zone, on a cluster."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from control.move.commands import ReassignCommand
from control.move.events import Event, EventKind
from control.move.state import accepted_data
from control.operations.bus import client
from control.operations.bus.client import OperationsClient
from control.operations.bus.journal import Journal
from control.operations.bus.topics import Bus
from partiscope.cli.app import run
from partiscope.cli.reassignments import moves
from partiscope.cli.shared.exits import Exit
from partiscope.cli.shared.options import target_with
from partiscope.identity import Target
from planner.proposal import PartitionChange, Proposal
from tests.support.cluster import LocalCluster
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder, SyntheticSizes
from tests.unit.partiscope.cli.test_told import store

__all__ = ["store"]

Typed = Callable[..., tuple[int, str, str]]
ZONED = re.compile(r"\d\d:\d\d\+0545")


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Runs a command of which no cluster is known; its status, output and messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path / "data"))

    def type_(*words: str) -> tuple[int, str, str]:
        status = run(list(words))
        told = capsys.readouterr()
        return status, told.out, told.err

    return type_


@pytest.fixture
def typed(alone: Typed, our_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Runs a command on the cluster, which is the bus too."""
    for name in ("BOOTSTRAP", "BUS"):
        monkeypatch.setenv(f"PARTISCOPE_{name}", our_cluster.bootstrap)
    return alone


STATUSES = {
    "done": (Exit.DONE, 0, ("topics", "list"), ""),
    "refused": (Exit.FAILED, 1, ("topics", "create", "two words"), "INVALID_TOPIC"),
    "no such group": (Exit.WRONG_USE, 2, ("groups", "describe", "no-such"), "'no-such'"),
    "no broker to drain": (Exit.WRONG_USE, 2, ("brokers", "drain", "9"), "101, 102, 103"),
    "no such config": (
        Exit.WRONG_USE, 2, ("topics", "create", "new", "--config", "flush.m=1"), "flush.ms or",
    ),
    "an unknown word": (Exit.WRONG_USE, 2, ("topics", "--no-such"), "--no-such"),
    "an odd time": (Exit.WRONG_USE, 2, ("journal", "--since", "soon"), "'soon'"),
    "an unreadable file": (Exit.WRONG_USE, 2, ("reassign", "no-such.json"), "no-such.json"),
    "no such broker": (Exit.WRONG_USE, 2, ("configs", "describe", "broker:999"), "101, 102, 103"),
    "not confirmed": (Exit.REFUSED, 3, ("topics", "delete", "kept"), "--yes"),
    "no plan does it": (
        Exit.REFUSED, 3, ("plan", "--remove-brokers", "101,102,103"), "fewer brokers",
    ),
    "an impossible drain": (
        Exit.REFUSED, 3, ("brokers", "drain", "103", "--yes"), "not drained",
    ),
    "nobody answers": (
        Exit.UNREACHABLE, 4, ("topics", "list", "--bootstrap", "127.0.0.1:1"), "127.0.0.1:1",
    ),
    "no figures": (Exit.UNREACHABLE, 4, ("status", "--store", "nowhere"), "nowhere"),
}  # fmt: skip


@pytest.mark.parametrize("case", STATUSES)
def test_the_status_is_the_documented_one(typed: Typed, case: str) -> None:
    name, number, words, wanted = STATUSES[case]
    typed("topics", "create", "kept", "--replication-factor", "3")
    status, _, told = typed(*words)
    assert (status, name) == (number, number), told
    assert wanted in told


OF_A_TOPIC = (
    ("topics", "describe"), ("topics", "alter", "--partitions", "9"), ("topics", "delete", "--yes"),
    ("topics", "delete-records", "--before", "latest", "--yes"), ("configs", "describe"),
    ("configs", "alter", "--config", "retention.ms=1"), ("topics", "create", "x", "--like"),
    ("groups", "alter", "g", "--to", "latest", "--create", "--topic"), ("elect", "--topic"),
    ("tail", "-e"), ("browse", "--partition", "0", "--offset", "0"), ("produce", "--value", "a"),
)  # fmt: skip


@pytest.mark.parametrize("words", OF_A_TOPIC, ids=" ".join)
def test_an_unknown_topic_is_wrong_use_and_near_names_are_told(
    typed: Typed, words: tuple[str, ...]
) -> None:
    typed("topics", "create", "payments")
    flags = [each for each in words if each in ("--like", "--topic")]
    place = len(words) if flags else 1 if words[0] in ("tail", "browse", "produce") else 2
    status, _, told = typed(*words[:place], "paymnets", *words[place:])
    assert status == 2, told
    assert lacking(told, "paymnets", "did you mean payments?", "There are") == []


def test_a_finding_that_is_not_critical_is_status_0_and_stopped_figures_are_5(
    store: str, tmp_path: Path, alone: Typed
) -> None:
    assert alone("status", "--store", store)[0] == 0
    assert alone("status", "--store", store, "--fail-on", "warning")[0] == 5
    assert alone("status", "--store", store, "--fail-on", "notice")[0] == 2
    quiet = SyntheticSizes(topics=1, partitions=1, groups=0)
    StoreBuilder(tmp_path / "quiet").write_synthetic(
        quiet, history_s=10, at_ms=time.time_ns() // 1_000_000
    )
    status, out, told = alone(
        "status", "--store", str(tmp_path / "quiet"), "--fail-on", "warning", "--json"
    )
    assert (status, [it["kind"] for it in json.loads(out)["findings"]]) == (0, []), told
    past_ms = time.time_ns() // 1_000_000 - 600_000
    sizes = SyntheticSizes(topics=1, partitions=1, groups=1)
    StoreBuilder(tmp_path / "old").write_synthetic(sizes, history_s=10, at_ms=past_ms)
    status, out, told = alone("status", "--store", str(tmp_path / "old"))
    assert (status, Exit.FINDING) == (5, 5), told
    assert "critical cluster: silent" in out


def test_who_ends_a_command_is_told_by_its_status(typed: Typed, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text(f"{'x' * 200}\n" * 2_000)
    assert typed("topics", "create", "ended")[0] == 0
    assert typed("produce", "ended", "--file", str(lines))[0] == 0
    words = (sys.executable, "-m", "partiscope", "tail", "ended", "--offset", "earliest")
    with (
        subprocess.Popen(words, stdout=subprocess.PIPE) as interrupted,
        subprocess.Popen(words, stdout=subprocess.PIPE) as unheard,
    ):
        for reading in (interrupted, unheard):
            assert reading.stdout is not None
            assert reading.stdout.readline()
        interrupted.send_signal(signal.SIGINT)
        interrupted.communicate(timeout=WAIT_S)
        assert unheard.stdout is not None
        unheard.stdout.close()
        assert (interrupted.returncode, unheard.wait(WAIT_S)) == (130, 0)


def test_a_watch_whose_bus_dies_says_what_goes_on_and_how_to_watch_again(
    tmp_path: Path, alone: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    for module in (client, moves):
        monkeypatch.setattr(module, "WATCH_OUTAGE_S", 1.0)
    monkeypatch.setattr(moves, "note", said.append)
    with ThreadPoolExecutor(1) as pool, LocalCluster(tmp_path / "bus", 2) as bus:
        for name in ("BOOTSTRAP", "BUS"):
            monkeypatch.setenv(f"PARTISCOPE_{name}", bus.bootstrap)
        move = asyncio.run(_accepted(target_with(bootstrap=bus.bootstrap, bus=bus.bootstrap)))
        watching = pool.submit(alone, "moves", "watch")
        wait_until(lambda: bool(said), "it watches")
        bus.stop()
        status, _, told = watching.result(WAIT_S)
    assert (status, Exit.UNREACHABLE) == (4, 4), told
    assert any("waiting up to" in line for line in said)
    wanted = (move, "not cancelled", "the executor goes on", f"`partiscope moves watch {move}")
    assert not lacking(told, *wanted)
    assert len(told.splitlines()) == 1


@pytest.fixture
def kathmandu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("kathmandu")
def test_moves_and_the_journal_carry_their_zone(
    typed: Typed, our_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    at = our_cluster.bootstrap
    asyncio.run(_change_something(target_with(bootstrap=at, bus=at)))
    for name in ("moves", "journal"):
        _, out, told = typed(name)
        assert ZONED.search(out), (name, out, told)
        assert ZONED.search(typed(name, "--json")[1]) is None, name


def test_the_journal_is_searched_by_words_and_by_time(
    typed: Typed, our_cluster: LocalCluster
) -> None:
    at = our_cluster.bootstrap
    asyncio.run(_change_something(target_with(bootstrap=at, bus=at)))

    def found(*flags: str) -> set[str]:
        return {it["who"] for it in json.loads(typed("journal", "--json", *flags)[1])["journal"]}

    assert found("--filter", "ADA create", "--since", "1h") == {"ada"}
    assert found("--filter", "ada nothing-of-this-name") == set()
    assert found("--filter", "ada", "--until", "1h") == set()


@pytest.mark.usefixtures("kathmandu")
def test_findings_carry_their_zone(store: str, alone: Typed) -> None:
    assert ZONED.search(alone("status", "--store", store)[1])


async def _submitted(target: Target) -> str:
    """The id of a reassignment that nobody runs."""
    change = PartitionChange(topic="t", partition=0, before=(1,), after=(2,), size_bytes=0)
    async with OperationsClient(target.bus, of=target.watched) as asking:
        return await asking.submit_reassign(
            Proposal(name="p", changes=(change,)),
            bootstrap=target.bus or "",
            cluster_id=target.watched.cluster_id or "",
        )


async def _accepted(target: Target) -> str:
    """The same, once an executor has accepted it."""
    move = await _submitted(target)
    async with Bus(target.bus) as bus:
        (command,), _ = await bus.read_commands()
        assert isinstance(command, ReassignCommand)
        told = accepted_data(command)
        kind = EventKind.ACCEPTED
        await bus.publish_event(Event(operation_id=move, kind=kind, at_ms=1, data=told))
    return move


async def _change_something(target: Target) -> None:
    await _submitted(target)
    journal = Journal(target.bus, of=target.watched, who="ada")
    try:
        async with journal.entry("create topic t", before={}, after={"partitions": 1}):
            pass
    finally:
        await journal.close()
