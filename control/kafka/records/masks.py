"""Masking rules of this process: every reader asks here before it shows a record."""

from collections.abc import Callable

from control.kafka.connection.settings import KafkaSettings
from control.kafka.records.record import Mask

Masks = Callable[[KafkaSettings, str], Mask | None]
"""From a cluster and a topic to what is masked there, for who acts now."""


def _no_masks(_settings: KafkaSettings, _topic: str) -> None:
    return None


_masks: Masks = _no_masks


def use_masks(masks: Masks = _no_masks) -> None:
    """Sets the rules; without, nothing is masked."""
    global _masks
    _masks = masks


def mask_of(settings: KafkaSettings, topic: str) -> Mask | None:
    """The mask of a topic's records; None: there is none."""
    return _masks(settings, topic)
