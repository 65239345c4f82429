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
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, "__transaction_state", "__share_group_state"})
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


def find_collision(name: str, others: Iterable[str]) -> str | None:
    """A topic whose name differs only in '.' and '_', which metric names cannot tell apart."""
    if "." not in name and "_" not in name:
        return None
    unified = _unify(name)
    return next((other for other in others if other != name and _unify(other) == unified), None)


def _unify(name: str) -> str:
    return name.replace(".", "_")
