"""Topics of Metadata responses, encoded once per change.

Images share what did not change, so a topic's bytes stay right while its TopicImage and the map
of brokers are the very same objects.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.large_answer import LARGE_ENTRIES
from broker.handlers.topic_view import view_topic
from broker.metadata.image import BrokerImage, MetadataImage, TopicImage
from broker.protocol.hot.metadata import encode_topic

BLOBS_BYTES_MAX = 64 * 1024 * 1024
"""Of encoded topics that are kept; when there would be more, all are forgotten."""
BLOB_BYTES = 300
"""What one takes beside what is encoded."""
LISTENER_NOT_FOUND_SINCE = 6
"""Earlier versions of Metadata call a leader without the listener not available."""


_Key = tuple[str, int, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blob:
    topic: TopicImage
    brokers: Mapping[int, BrokerImage]
    encoded: bytes


class MetadataBlobs:
    """The cache of one node."""

    __slots__ = ("_blobs", "_large", "size_bytes")

    def __init__(self) -> None:
        self._blobs: dict[_Key, _Blob] = {}
        self._large = asyncio.Lock()
        self.size_bytes = 0

    async def encode(
        self,
        image: MetadataImage,
        topic: TopicImage,
        version: int,
        listener_name: str,
        operations: int,
    ) -> bytes:
        """The topic as an element of a Metadata response of this version, by this listener.

        A thread encodes a large topic, once for all who ask meanwhile.
        """
        key = (topic.name, version, listener_name, operations)
        work = (image, topic, version, listener_name, operations)
        if (found := self._find(key, image, topic)) is not None:
            return found
        if len(topic.partitions) <= LARGE_ENTRIES:
            return self._keep(key, image, topic, _encode(*work))
        async with self._large:
            if (found := self._find(key, image, topic)) is not None:
                return found
            return self._keep(key, image, topic, await asyncio.to_thread(_encode, *work))

    def _find(self, key: _Key, image: MetadataImage, topic: TopicImage) -> bytes | None:
        blob = self._blobs.get(key)
        is_current = blob is not None and blob.topic is topic and blob.brokers is image.brokers
        return blob.encoded if blob is not None and is_current else None

    def _keep(self, key: _Key, image: MetadataImage, topic: TopicImage, encoded: bytes) -> bytes:
        blob = self._blobs.get(key)
        self.size_bytes += len(encoded) + BLOB_BYTES
        if blob is not None:
            self.size_bytes -= len(blob.encoded) + BLOB_BYTES
        if self.size_bytes > BLOBS_BYTES_MAX:
            self._blobs.clear()
            self.size_bytes = len(encoded) + BLOB_BYTES
        self._blobs[key] = _Blob(topic=topic, brokers=image.brokers, encoded=encoded)
        return encoded


def _encode(
    image: MetadataImage, topic: TopicImage, version: int, listener_name: str, operations: int
) -> bytes:
    view = view_topic(image, topic, listener_name, operations)
    if version < LISTENER_NOT_FOUND_SINCE:
        _tell_no_listener(view)
    return encode_topic(version, view)


def _tell_no_listener(view: dict[str, Any]) -> None:
    for partition in view["partitions"]:
        if partition["error_code"] is ErrorCode.listener_not_found:
            partition["error_code"] = ErrorCode.leader_not_available
