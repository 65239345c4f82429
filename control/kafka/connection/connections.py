"""How each cluster is reached: one place for every command, screen and process.

The composition root reads connections from settings and tells them here by bootstrap address;
whoever holds only an address (a command on the operations bus carries no secrets) gets TLS and
SASL from here. An address that was never told is plain text.
"""

from collections.abc import Iterable
from dataclasses import replace

from control.kafka.connection.settings import KafkaSettings
from control.model.watched_cluster import addresses_of

_known: dict[frozenset[str], KafkaSettings] = {}


def use_connections(connections: Iterable[KafkaSettings]) -> None:
    """Remember these connections by their bootstrap addresses, in place of earlier ones."""
    _known.clear()
    _known.update({addresses_of(settings.bootstrap): settings for settings in connections})


def are_plain() -> bool:
    """Whether address and id are all there is to know of the connections."""
    return all(map(_is_plain, _known.values()))


def _is_plain(known: KafkaSettings) -> bool:
    return known == KafkaSettings(bootstrap=known.bootstrap, cluster_id=known.cluster_id)


def settings_of(where: KafkaSettings | str, *, cluster_id: str = "") -> KafkaSettings:
    """The connection of a cluster that is named by its address, or the settings as given;
    ``cluster_id`` (empty: not told) is the cluster that must answer there.

    Some of its addresses are enough to know how it is reached, not to know which cluster it is. Who
    names others beside them (a forged command does) gets no login sent there: they are left out.
    """
    if isinstance(where, KafkaSettings):
        return where
    if cluster_id:
        return replace(settings_of(where), cluster_id=cluster_id)
    wanted = addresses_of(where)
    if wanted in _known:
        return _known[wanted]
    for addresses, settings in _known.items():
        if shared := addresses & wanted:
            reached = where if _is_plain(settings) else ",".join(sorted(shared))
            return replace(settings, bootstrap=reached, cluster_id=None)
    return KafkaSettings(bootstrap=where)
