"""A bootstrap address that is silent does not hide a cluster that lives behind another."""

import time

from control.kafka.admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.lab.session import ProduceJob, ProduceSession
from tests.contract.operations_rig import unique
from tests.support.silent import hung_listener, lost_listener


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
    assert time.monotonic() - began_s < 6.0
