"""Which partition a key hits, by the rules that real clients have.

* ``murmur2``: Java's default (Utils.murmur2, sign bit dropped, modulo), also aiokafka's and
  kafka-python's, and librdkafka's ``murmur2`` / ``murmur2_random``.
* ``crc32``: librdkafka's own default, ``consistent_random`` (zlib's CRC-32).
* ``fnv1a``: librdkafka's ``fnv1a_random`` (32 bit FNV-1a, Sarama's rule: the hash is taken as a
  signed number and its absolute value counts).

A record without a key has no rule: ``partition_for`` answers None and the client spreads such
records (sticky batches or at random). An empty key counts as none for ``crc32``; the other two hash
it.
"""

import zlib
from collections.abc import Callable
from enum import StrEnum
from typing import Final

_MASK: Final = 0xFFFFFFFF
_MURMUR_SEED: Final = 0x9747B28C
_MURMUR_M: Final = 0x5BD1E995
_MURMUR_R: Final = 24
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193


class KeyRule(StrEnum):
    """Names as screens and command line show them."""

    MURMUR2 = "murmur2"
    CRC32 = "crc32"
    FNV1A = "fnv1a"

    @property
    def client(self) -> str:
        """A client that has it without being configured."""
        return _CLIENTS[self]


_CLIENTS: Final = {
    KeyRule.MURMUR2: "Java",
    KeyRule.CRC32: "librdkafka",
    KeyRule.FNV1A: "Sarama",
}


def murmur2(data: bytes) -> int:
    """Java's 32 bit murmur2, as an unsigned number.

    >>> murmur2(b"21") - (1 << 32)
    -973932308
    """
    length = len(data)
    h = (_MURMUR_SEED ^ length) & _MASK
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _MURMUR_M & _MASK
        k = (k ^ (k >> _MURMUR_R)) * _MURMUR_M & _MASK
        h = (h * _MURMUR_M & _MASK) ^ k
    if length > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MURMUR_M & _MASK
    h = (h ^ (h >> 13)) * _MURMUR_M & _MASK
    return h ^ (h >> 15)


def fnv1a(data: bytes) -> int:
    """The 32 bit FNV-1a hash, as an unsigned number."""
    h = _FNV_OFFSET
    for byte in data:
        h = ((h ^ byte) * _FNV_PRIME) & _MASK
    return h


def _fnv1a_size(key: bytes) -> int:
    signed = fnv1a(key)
    signed -= (signed >> 31) << 32
    return abs(signed)


_RULES: Final[dict[KeyRule, Callable[[bytes], int | None]]] = {
    KeyRule.MURMUR2: lambda key: murmur2(key) & 0x7FFFFFFF,
    KeyRule.CRC32: lambda key: zlib.crc32(key) if key else None,
    KeyRule.FNV1A: _fnv1a_size,
}


def key_hash(rule: KeyRule, key: bytes) -> int | None:
    """The number whose remainder by the number of partitions is the key's partition; None: the
    client chooses by itself."""
    return _RULES[rule](key)


def partition_for(rule: KeyRule, key: bytes | None, partitions: int) -> int | None:
    """The partition that `key` hits, or None where the client chooses by itself.

    :raises ValueError: a topic has at least one partition.
    """
    if partitions < 1:
        raise ValueError(f"a topic has at least one partition, not {partitions}")
    found = None if key is None else key_hash(rule, key)
    return None if found is None else found % partitions


def partitions_for_key(key: bytes | None, partitions: int) -> dict[KeyRule, int | None]:
    """Every rule's answer for one key, for the line under the key field."""
    return {rule: partition_for(rule, key, partitions) for rule in KeyRule}
