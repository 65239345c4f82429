from uuid import UUID

from broker.metadata import records
from broker.metadata.image import ImageDelta, MetadataImage
from broker.metadata.metadata_service import MetadataService
from broker.metadata.records import MetadataRecord
from broker.metadata.replay import replay_batch
from tests.unit.broker.controller.images import topic_id


class Listener:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, ImageDelta]] = []

    def __call__(self, old: MetadataImage, new: MetadataImage, changed: ImageDelta) -> None:
        self.calls.append((old.offset, new.offset, changed))


def publish(service: MetadataService, *batch: MetadataRecord) -> None:
    image = service.image
    offset = image.offset + max(1, len(batch))
    service.publish(replay_batch(image, batch, offset=offset, epoch=1))


def test_subscribers_hear_of_changes_and_only_of_changes() -> None:
    service, listener = MetadataService(node_id=1, cluster_id="c"), Listener()
    service.subscribe(listener)
    publish(service)
    assert service.image.offset == 0
    assert listener.calls == []
    publish(service, records.TopicRecord(name="t", topic_id=topic_id("t")))
    ((old, new, changed),) = listener.calls
    assert (old, new) == (0, 1)
    assert changed.topics_changed == {"t"}


def test_change_of_controller_is_published_once() -> None:
    service, listener = MetadataService(node_id=1, cluster_id="c"), Listener()
    service.subscribe(listener)
    service.set_controller(3)
    service.set_controller(3)
    assert service.controller_id == 3
    assert [changed.controller_changed for _, _, changed in listener.calls] == [True]


def test_broker_epoch_is_that_of_this_node() -> None:
    service = MetadataService(node_id=1, cluster_id="c")
    assert service.broker_epoch == -1
    endpoint = records.BrokerEndpoint(name="PLAINTEXT", host="h", port=1)
    register = records.RegisterBrokerRecord(
        broker_id=1, incarnation_id=UUID(int=1), broker_epoch=7, endpoints=(endpoint,)
    )
    publish(service, register)
    assert service.broker_epoch == 7
