"""A bootstrap address that is silent does not hide a cluster that lives behind another."""

import time
from pathlib import Path

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.connection.wire import brokers_that_answer
from control.kafka.ports import NewTopic
from control.messages.produce_session import ProduceJob, ProduceSession
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import broker_page
from spark_metrics.window.aggregates import AggregatesReader
from tests.contract.operations_rig import unique
from tests.support.patience import WAIT_S, patience_s
from tests.support.silent import hung_listener, lost_listener
from tests.support.store_builder import StoreBuilder
from tests.unit.control import clusters


async def test_produce_goes_by_the_address_that_answers(admin: KafkaAdmin, bootstrap: str) -> None:
    topic = unique("silent")
    await admin.create_topic(NewTopic(name=topic, partitions=1, replication_factor=1))
    with hung_listener() as hung, lost_listener() as lost:
        session = ProduceSession(
            f"{hung},{lost},127.0.0.1:1,{bootstrap}", ProduceJob(topic=topic, value="hello")
        )
        began_s = time.monotonic()
        done = await session.run_to_end()
    assert done.acked == 1
    assert time.monotonic() - began_s < patience_s(6.0)


def address_of(where: str) -> tuple[str, int]:
    host, _, port = where.partition(":")
    return host, int(port)


async def test_of_some_brokers_those_that_answer_are_told_within_a_second_or_two(
    bootstrap: str,
) -> None:
    here = address_of(bootstrap.split(",")[0])
    with hung_listener() as hung, lost_listener() as lost:
        addresses = {1: here, 2: address_of(hung), 3: address_of(lost), 4: ("127.0.0.1", 1)}
        found = await brokers_that_answer(KafkaSettings(bootstrap=bootstrap), addresses)
        assert found == {1}
        other = KafkaSettings(bootstrap=bootstrap, cluster_id="another-cluster")
        assert await brokers_that_answer(other, addresses) == frozenset()


def test_late_figures_name_the_broker_that_hangs_and_no_other(
    bootstrap: str, tmp_path: Path
) -> None:
    now_ms = time.time_ns() // 1_000_000 - 20_000
    host, port = address_of(bootstrap.split(",")[0])
    with hung_listener() as hung:
        brokers = [
            clusters.broker(101, host=host, port=port, sampled_ms=now_ms, heard_ms=now_ms),
            clusters.broker(102, port=address_of(hung)[1], sampled_ms=now_ms, heard_ms=now_ms),
        ]
        health = {"batch_id": 0, "batch_ms": 300, "newest_round_ms": now_ms, "written_ms": now_ms}
        StoreBuilder(tmp_path).write({"brokers": brokers, "health": [health]})
        feed = SnapshotFeed(AggregatesReader(str(tmp_path)), bootstrap=bootstrap)
        feed.start()
        try:
            found = feed.wait_for(
                lambda it: any(one.kind == "metrics-late" for one in it.findings), timeout_s=WAIT_S
            )
        finally:
            feed.stop()
    statuses = {row.key: row.status.text.partition(" ")[0] for row in broker_page(found).rows}
    assert statuses == {"101": "alive", "102": "silent"}
