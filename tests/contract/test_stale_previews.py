"""The command line where the cluster changes between preview and deed, as while brokers die."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from control.operations.catalogue.topics.create_topic import CreateTopic
from control.operations.operation_session import OperationSession
from control.operations.previews import Previewed
from partiscope.cli.app import run
from partiscope.cli.shared.exits import Exit
from partiscope.cli.shared.operations import PREVIEWS_MAX
from tests.support.cluster import LocalCluster
from tests.support.kafka_eyes import KafkaEyes
from tests.support.settle import wait_until

LEAVES: Final = 103


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "leaves") as cluster:
        monkeypatch.setenv("PARTISCOPE_BOOTSTRAP", cluster.bootstrap)
        monkeypatch.setenv("PARTISCOPE_BUS", cluster.bootstrap)
        monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path / "data"))
        yield cluster


def test_a_topic_goes_elsewhere_when_its_broker_leaves_after_the_preview(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    perform = OperationSession.perform

    async def once_it_has_left(session: OperationSession, each: Previewed, *, typed: str) -> object:
        if LEAVES in cluster.processes:
            cluster.kill(LEAVES)
            wait_until(lambda: LEAVES not in cluster.alive_brokers(101), "it is fenced")
        return await perform(session, each, typed=typed)

    monkeypatch.setattr(OperationSession, "perform", once_it_has_left)
    create = ("topics", "create", "orders", "--partitions", "3", "--replication-factor", "2")
    assert run([*create, "--json"]) == Exit.DONE
    told = capsys.readouterr()
    assert f"broker {LEAVES} left" in told.err
    assert set(json.loads(told.out)["changes"]) >= {"broker 101", "broker 102"}
    assert f"broker {LEAVES}" not in json.loads(told.out)["changes"]
    listed = KafkaEyes(cluster.bootstrap).replicas("orders")
    assert {it for replicas in listed.values() for it in replicas} == {101, 102}


def test_what_is_stale_each_time_is_refused(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = []
    require_fresh = CreateTopic.require_fresh

    async def of_others(command: CreateTopic, context: object, facts: object) -> None:
        judged.append(facts)
        await require_fresh(command, context, frozenset({(999, None)}))  # type: ignore[arg-type]

    monkeypatch.setattr(CreateTopic, "require_fresh", of_others)
    assert run(["topics", "create", "orders", "--partitions", "1"]) == Exit.REFUSED
    assert len(judged) == PREVIEWS_MAX
    assert "broker 999 left" in capsys.readouterr().err
