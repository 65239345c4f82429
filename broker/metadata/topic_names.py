"""Which topic names Kafka allows, and which it keeps for itself.

Source: org.apache.kafka.common.internals.Topic.
"""

import re
from collections.abc import Iterable
from typing import Final

NAME_LENGTH_MAX: Final = 249
METADATA_TOPIC: Final = "__cluster_metadata"
"""The log of the metadata quorum: no client creates it, no record of a topic touches it."""
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC, "__share_group_state"})
"""Clients neither write to them nor delete their records."""
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+\Z")


def problem_of_topic_name(name: str) -> str:
    """Kafka's words on a name that cannot be; empty for one that can."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if not _LEGAL.match(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return ""


class Collisions:
    """Names that differ only in '.' and '_', which metric names cannot tell apart."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names
        self._by_unified: dict[str, str] | None = None

    def find(self, name: str) -> str | None:
        """One of the names that collides with this one."""
        if "." not in name and "_" not in name:
            return None
        if self._by_unified is None:
            self._by_unified = {_unify(each): each for each in self._names}
        found = self._by_unified.get(_unify(name))
        return None if found == name else found


def _unify(name: str) -> str:
    return name.replace(".", "_")
