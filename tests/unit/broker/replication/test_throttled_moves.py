"""Replicas that come while they are throttled."""

import time
from typing import Any

from broker.metadata.image import broker_resource, topic_resource
from tests.support.settle import until
from tests.unit.broker.replication.rig import Rig, records


async def test_a_replica_taken_off_the_throttled_ones_comes_at_once(tmp_path: Any) -> None:
    rig = Rig(tmp_path, nodes=2)
    rig.create(1)
    for _ in range(3):
        await rig.nodes[1].append("large" * 1000)
    rig.configure(broker_resource(2), follower_replication_throttled_rate="1")
    rig.configure(topic_resource("t"), follower_replication_throttled_replicas="0:2")
    rig.change(replicas=(1, 2), adding_replicas=(2,))
    copy = rig.nodes[2].partition().log
    await until(lambda: copy.log_end_offset == 1)  # the next bytes may flow in hours
    rig.configure(topic_resource("t"), follower_replication_throttled_replicas="1:2")
    await until(lambda: 2 in rig.nodes[1].partition().isr, timeout_s=5)
    assert copy.log_end_offset == 3
    await rig.close()


async def test_a_flush_of_a_throttled_replica_does_not_end_its_wait(tmp_path: Any) -> None:
    rig = Rig(tmp_path, nodes=2)
    rig.create(1)
    for _ in range(8):
        await rig.nodes[1].replicas.append_and_wait("t", 0, records("x" * 5_000))
    rig.configure(broker_resource(2), follower_replication_throttled_rate="20000")
    throttled = {"follower_replication_throttled_replicas": "0:2"}
    rig.configure(topic_resource("t"), flush_messages="1", **throttled)
    begun = time.monotonic()
    rig.change(replicas=(1, 2), adding_replicas=(2,))
    await until(lambda: rig.nodes[2].replicas.partition("t", 0) is not None)
    copy = rig.nodes[2].partition().log
    await until(lambda: copy.log_end_offset == 8)
    assert time.monotonic() - begun > 1, "40 kB at 20 kB/s, less what comes at the very end"
    await rig.close()
