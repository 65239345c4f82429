"""A broker is down: of a group is told, and reset, what can be."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.commits import commit
from tests.support.phrases import lacking
from tests.support.settle import wait_until

pytestmark = pytest.mark.thorough


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster") as cluster:
        yield cluster


def test_a_group_with_an_offline_partition_is_described_and_reset_beside_it(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    line = CommandLine(bootstrap=cluster.bootstrap, bus=cluster.bootstrap, folder=tmp_path)
    asyncio.run(_make(cluster))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    commit(admin, "billing", {("orders", number): 0 for number in range(3)})
    victim = cluster.ids[-1]
    down = cluster.ids.index(victim)
    cluster.kill(victim)

    def notes() -> dict[str, str | None]:
        told = line.json("groups", "describe", "billing")["partitions"]
        return {f"{it['topic']}-{it['partition']}": it["note"] for it in told}

    wait_until(lambda: notes()[f"orders-{down}"] is not None, "that it is told")
    told = notes()
    lives = {f"orders-{number}" for number in range(3) if number != down}
    assert {name for name, note in told.items() if note is None} == lives
    assert lacking(told[f"orders-{down}"] or "", "no leader") == []

    asked = ("groups", "alter", "billing", "--to", "latest", "--topic", "orders", "--yes")
    refused = line.run(*asked, status=2)
    assert lacking(refused, f"orders-{down}", "no leader", "the others can be named") == []
    others = ",".join(str(number) for number in range(3) if number != down)
    line.run(*asked, "--partitions", others, "--dry-run")
    typo = line.run("groups", "alter", "biling", "--to", "latest", "--topic", "orders", status=2)
    assert lacking(typo, "biling", "did you mean billing", "--create") == []


async def _make(cluster: LocalCluster) -> None:
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        each = {number: (broker,) for number, broker in enumerate(cluster.ids)}
        await admin.create_topic(NewTopic(name="orders", assignment=each))
