"""The throttle that an answer tells of (`throttle_time_ms`), and the muted connection (KIP-219)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from broker.background import Timer
from broker.clock import Clock
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.services import Request
from broker.protocol import codec

_FIELD: Final = "throttle_time"
_POSITION: Final = 8
"""Of the throttle in a frame that its handler wrote (Metadata): behind size and number."""


class Muting:
    """Keeps a client that used more than it may from being heard; `on_change` is called when that
    begins and when it is over."""

    __slots__ = ("_clock", "_on_change", "_timer", "_until_ms")

    def __init__(self, clock: Clock, on_change: Callable[[], None]) -> None:
        self._clock = clock
        self._on_change: Callable[[], None] | None = on_change
        self._timer: Timer | None = None
        self._until_ms = 0

    @property
    def is_on(self) -> bool:
        """Whether its requests wait."""
        return self._timer is not None

    def begin(self, time_ms: int) -> None:
        """Hear nothing for so long from now on, or for as long as was said before."""
        until_ms = self._clock.monotonic_ms() + time_ms
        if self._on_change is None or until_ms <= self._until_ms:
            return
        self._until_ms = until_ms
        self._timer = self._timer or Timer("throttled connection", self._over)
        self._timer.set(time_ms)
        self._on_change()

    def _over(self) -> None:
        self._timer = None
        if self._on_change is not None:
            self._on_change()

    def end(self) -> None:
        """The connection has gone. Nothing of it refers back to it, so that it is freed at once."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._on_change = None, None


def told_throttle_ms(message: Any) -> int:
    """The throttle that the controller put into the answer to a request that went on to it."""
    told = getattr(message, _FIELD, None)
    return 0 if told is None else told // timedelta(milliseconds=1)


def with_throttle(request: Request, message: Any, time_ms: int) -> Any:
    """The answer with this throttle; one that cannot tell of it as it is."""
    if not time_ms:
        return message
    entity_type = codec.response_type(request.api_key, request.api_version)
    if _FIELD not in entity_type.__dataclass_fields__:
        return message
    if isinstance(message, bytes):
        at = _POSITION + bool(entity_type.__header_schema__.__flexible__)
        return message[:at] + time_ms.to_bytes(4, "big") + message[at + 4 :]
    if isinstance(message, LargeAnswer):
        return LargeAnswer(message.entries, **message.fields | {_FIELD: time_ms})
    return replace(message, **{_FIELD: timedelta(milliseconds=time_ms)})
