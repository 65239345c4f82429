"""Leader hints in Produce and Fetch responses (KIP-951)."""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from broker.protocol.hot.cursor import encode_length, encode_string, encode_tagged

_LEADER: Final = struct.Struct(">iib")
_I32: Final = struct.Struct(">i")


class LeaderHint(NamedTuple):
    """Leader of a partition, as far as the answering node knows."""

    leader_id: int
    leader_epoch: int


class NodeEndpoint(NamedTuple):
    """Where a hinted leader is reached."""

    node_id: int
    host: str
    port: int
    rack: str | None


def encode_leader_hint(tag: int, hint: LeaderHint) -> bytes:
    """The tagged field LeaderIdAndEpoch."""
    return encode_tagged(tag, _LEADER.pack(hint.leader_id, hint.leader_epoch, 0))


def encode_node_endpoints(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """The count of tags and, when there are endpoints, the tagged field 0 of the response."""
    if not endpoints:
        return b"\x00"
    parts = [encode_length(len(endpoints), True)]
    for endpoint in endpoints:
        parts += (
            _I32.pack(endpoint.node_id),
            encode_string(endpoint.host, True),
            _I32.pack(endpoint.port),
            encode_string(endpoint.rack, True),
            b"\x00",
        )
    return b"\x01" + encode_tagged(0, b"".join(parts))
