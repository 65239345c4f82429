"""How each cluster is reached: one place for every command, screen and process.

The composition root reads connections from settings and tells them here by bootstrap address;
whoever holds only an address (a command on the operations bus carries no secrets) gets TLS and
SASL from here. An address that was never told is plain text.
"""

from collections.abc import Iterable

from control.kafka.settings import KafkaSettings

_known: dict[str, KafkaSettings] = {}


def use_connections(connections: Iterable[KafkaSettings]) -> None:
    """Remember these connections by their bootstrap address, in place of earlier ones."""
    _known.clear()
    _known.update({_key(settings.bootstrap): settings for settings in connections})


def settings_of(where: KafkaSettings | str) -> KafkaSettings:
    """The connection of a cluster that is named by its address, or the settings as given."""
    if isinstance(where, KafkaSettings):
        return where
    return _known.get(_key(where), KafkaSettings(bootstrap=where))


def _key(bootstrap: str) -> str:
    return ",".join(sorted(part.strip() for part in bootstrap.split(",") if part.strip()))
