"""`moves` changes what it is allowed to: of production by name, of a read-only cluster never."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.model.watched_cluster import WatchedCluster
from control.move.commands import Command, ControlAction, ControlCommand, ReassignCommand
from control.move.throttle import THROTTLE_NONE
from control.operations.bus.client import OperationsClient
from control.operations.bus.topics import Bus
from control.operations.errors import ElsewhereError, InvalidInputError
from partiscope.cli.app import run
from planner.proposal import PartitionChange, Proposal
from tests.contract.operations_rig import ExecutorProcess
from tests.support.cluster import LocalCluster
from tests.support.settle import wait_until

CLUSTERS = """
[clusters.usual]
bootstrap = "127.0.0.1:1"
[clusters.prod]
bootstrap = "127.0.0.1:2,127.0.0.1:3"
production = true
[clusters.kept]
bootstrap = "127.0.0.1:4"
read_only = true
"""
DONE, WRONG_USE, REFUSED = 0, 2, 3


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("bus"), brokers=1) as bus:
        yield bus


async def _submit(bus: str, *clusters: str) -> list[str]:
    change = PartitionChange(topic="t", partition=0, before=(1,), after=(2,), size_bytes=0)
    async with OperationsClient(bus) as client:
        return [
            await client.submit_reassign(
                Proposal(name="p", changes=(change,)), bootstrap=cluster, throttle=THROTTLE_NONE
            )
            for cluster in clusters
        ]


def test_a_move_is_changed_as_its_own_cluster_allows(
    bus: LocalCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "partiscope.toml").write_text(CLUSTERS)
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(tmp_path / "partiscope.toml"))
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("PARTISCOPE_BOOTSTRAP", "usual")
    monkeypatch.setenv("PARTISCOPE_BUS", bus.bootstrap)
    usual, prod, kept = asyncio.run(
        _submit(bus.bootstrap, "127.0.0.1:1", "127.0.0.1:3", "127.0.0.1:4")
    )

    def told(*words: str) -> tuple[int, str]:
        status = run(["moves", *words])
        said = capsys.readouterr()
        return status, said.out + said.err

    assert told("pause", usual)[0] == DONE
    # Who stops what runs on a production cluster need not name it; who lets it go on must.
    assert told("pause", prod) == (DONE, f"asked to pause {prod}\n")
    for act in (("resume", prod), ("throttle", prod, "--throttle", "9MiB")):
        status, words = told(*act)
        assert (status, "prod is a production cluster" in words) == (REFUSED, True), words
        assert told(*act, "--cluster", "prod")[0] == DONE
    assert told("cancel", prod, "--after-wave")[0] == DONE
    assert told("cancel", prod) == (DONE, f"asked to cancel {prod}\n")
    status, words = told("cancel", prod, "--cluster", "usual")
    assert (status, "prod, not about usual" in words) == (WRONG_USE, True), words
    status, words = told("pause", kept, "--cluster", "kept")
    assert (status, "kept is read-only" in words) == (REFUSED, True), words
    status, words = told("list", "--cluster", "prod")
    assert [each in words for each in (usual, prod, kept)] == [False, True, False]
    assert told("pause", "--cluster", "usual") == (DONE, f"asked to pause {usual}\n")
    assert run(["moves", "resume", usual, "--json"]) == DONE
    assert json.loads(capsys.readouterr().out) == {"id": usual, "asked": "resume"}


async def test_who_looks_at_one_cluster_leaves_the_moves_of_others_alone(bus: LocalCluster) -> None:
    ours, theirs = await _submit(bus.bootstrap, "127.0.0.1:11", "127.0.0.1:13")
    here = WatchedCluster(bootstrap="127.0.0.1:11,127.0.0.1:19")
    async with OperationsClient(bus.bootstrap, of=here) as client:
        assert [state.operation_id for state in await client.list()] == [ours]
        await client.control(ours, ControlAction.PAUSE)
        for look in (client.get, client.rollback_plan):
            with pytest.raises(ElsewhereError, match=r"it moves partitions of 127\.0\.0\.1:13"):
                await look(theirs)
        for act in ControlAction:
            with pytest.raises(ElsewhereError):
                await client.control(theirs, act)
        for rate in ("50", 0):
            with pytest.raises(InvalidInputError, match=r"is less than 1\.0 KiB/s"):
                await client.control(ours, ControlAction.THROTTLE, throttle=rate)


@pytest.mark.thorough
def test_a_command_that_cannot_be_carried_out_does_not_end_the_executor(tmp_path: Path) -> None:
    """It fails by itself, with the reason; what was asked after it is done."""
    with LocalCluster(tmp_path / "bus", brokers=1) as bus:

        def command(operation_id: str, throttle: str) -> ReassignCommand:
            change = PartitionChange(
                topic="none", partition=0, before=(101,), after=(102,), size_bytes=0
            )
            return ReassignCommand(
                operation_id=operation_id,
                bootstrap=bus.bootstrap,
                changes=(change,),
                throttle=throttle,
            )

        async def ended() -> dict[str, str]:
            async with OperationsClient(bus.bootstrap) as client:
                return {it.operation_id: it.message for it in await client.list() if it.is_finished}

        async def submit() -> None:
            async with Bus(bus.bootstrap) as to:
                await to.ensure_topics()
                await to.publish_command(command("mv-bad", "three apples"))
                await to.publish_command(command("mv-next", THROTTLE_NONE))

        asyncio.run(submit())
        with ExecutorProcess(bus.bootstrap, tmp_path / "executor.log") as executor:
            wait_until(
                lambda: asyncio.run(ended()).keys() == {"mv-bad", "mv-next"},
                "both have ended",
                story=(tmp_path / "executor.log").read_text,
            )
            assert "three apples" in asyncio.run(ended())["mv-bad"]
            assert executor.process is not None
            assert executor.process.poll() is None


@pytest.mark.thorough
def test_a_cluster_that_is_gone_holds_up_no_other(tmp_path: Path) -> None:
    """What waits for it is cancelled like anything else."""
    with LocalCluster(tmp_path / "bus", brokers=1) as bus:
        change = PartitionChange(
            topic="none", partition=0, before=(101,), after=(102,), size_bytes=0
        )
        away, here = (
            ReassignCommand(
                operation_id=operation_id,
                bootstrap=bootstrap,
                changes=(change,),
                throttle=THROTTLE_NONE,
            )
            for operation_id, bootstrap in (("mv-away", "127.0.0.1:1"), ("mv-here", bus.bootstrap))
        )

        async def ended() -> dict[str, str]:
            async with OperationsClient(bus.bootstrap) as client:
                return {it.operation_id: it.message for it in await client.list() if it.is_finished}

        async def submit(*commands: Command) -> None:
            async with Bus(bus.bootstrap) as to:
                await to.ensure_topics()
                for command in commands:
                    await to.publish_command(command)

        log = tmp_path / "executor.log"
        asyncio.run(submit(away, here))
        with ExecutorProcess(bus.bootstrap, log, watched="127.0.0.1:1"):
            wait_until(
                lambda: asyncio.run(ended()).keys() == {"mv-here"},
                "the other has ended",
                story=log.read_text,
            )
            asyncio.run(
                submit(
                    ControlCommand(operation_id="mv-away", action=ControlAction.CANCEL, who="me")
                )
            )
            wait_until(
                lambda: "mv-away" in asyncio.run(ended()), "it is cancelled", story=log.read_text
            )
            assert asyncio.run(ended())["mv-away"] == "cancelled before it began"
