"""Blocks of producer ids (AllocateProducerIds, KIP-730)."""

from dataclasses import dataclass
from typing import Final

from broker.controller.brokers import check_epoch
from broker.controller.decision import Decision
from broker.metadata.image import MetadataImage
from broker.metadata.records import ProducerIdsRecord

BLOCK_SIZE: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdBlock:
    """`count` producer ids from `first` on, for one broker alone, for ever."""

    first: int
    count: int


def decide_allocate(
    broker_id: int, broker_epoch: int, image: MetadataImage
) -> Decision[ProducerIdBlock]:
    """The next block. Raises BrokerNotRegisteredError, StaleBrokerEpochError."""
    check_epoch(image, broker_id, broker_epoch)
    first = image.next_producer_id
    record = ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    return Decision((record,), ProducerIdBlock(first=first, count=BLOCK_SIZE))
