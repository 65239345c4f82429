"""The interface of receivers, and their error."""

from typing import Final, Protocol

from control.alerts.messages import Message

TIMEOUT_S: Final = 15.0
"""A receiver that takes a message later counts as one that did not, and gets it again."""
WHY_CHARACTERS: Final = 300


class DeliveryError(Exception):
    """A message was not taken; the text says why, and holds no secret."""


class Receiver(Protocol):
    """Sends messages one after the other, in a thread of its own."""

    @property
    def kind(self) -> str:
        """``webhook``, ``email`` …"""

    @property
    def place(self) -> str:
        """Where it sends, without secrets."""

    @property
    def refresh_ms(self) -> int | None:
        """It forgets what is not told again after such a time; None: it does not forget."""

    def send(self, message: Message) -> None:
        """Return once it has taken the message.

        :raises DeliveryError: it has not.
        """


def shortened(why: object) -> str:
    """The words of others, on one line."""
    words = " ".join(str(why).split())
    return words if len(words) <= WHY_CHARACTERS else f"{words[: WHY_CHARACTERS - 1]}…"
