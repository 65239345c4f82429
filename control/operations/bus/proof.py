"""Proof of where a record of the bus comes from: HMAC-SHA256 with a key of the installation that
wrote it, in a header, over topic, key and value.

Anybody who may write to the bus may write any value; only who can read the key can write the proof.
Where the keys lie is told by the composition root (``use_keys``); without keys nothing is proven.
"""

import hmac
from collections.abc import Sequence
from typing import Final, Protocol

HEADER: Final = "partiscope-proof"
KEY_BYTES: Final = 32

Headers = Sequence[tuple[str, bytes | None]]


class Keys(Protocol):
    """Keys of installations."""

    def own(self) -> bytes:
        """The key by which this installation proves its records; it is made at first use.

        :raises ProofKeyError: there is none, and it cannot be made.
        """

    def known(self) -> Sequence[bytes]:
        """Keys of all installations whose records are believed."""


class _NoKeys:
    def own(self) -> bytes:
        return b""

    def known(self) -> Sequence[bytes]:
        return ()


_keys: Keys = _NoKeys()


def use_keys(keys: Keys) -> None:
    """Prove and judge by these from now on, in place of earlier ones."""
    global _keys
    _keys = keys


def proof_headers(topic: str, key: bytes, value: bytes) -> tuple[tuple[str, bytes], ...]:
    """The headers that prove a record of ours; none where no keys are in use.

    :raises ProofKeyError: there is no key, and it cannot be made.
    """
    own = _keys.own()
    return ((HEADER, _proof(own, topic, key, value)),) if own else ()


def is_proven(topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
    """Whether an installation that is believed has written exactly this."""
    told = [content for name, content in headers if name == HEADER]
    if len(told) != 1 or told[0] is None:
        return False
    return any(
        hmac.compare_digest(told[0], _proof(known, topic, key or b"", value or b""))
        for known in _keys.known()
    )


def _proof(own: bytes, topic: str, key: bytes, value: bytes) -> bytes:
    """Lengths go first, so that no byte can move from one part to the next."""
    proof = hmac.new(own, digestmod="sha256")
    for part in (topic.encode(), key, value):
        proof.update(len(part).to_bytes(8, "big"))
        proof.update(part)
    return proof.digest()
