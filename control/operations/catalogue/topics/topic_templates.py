"""Templates of topics: configs that belong together, by what the topic is for."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

HOUR_MS: Final = 3_600_000


class Template(StrEnum):
    """Purpose of a topic."""

    NONE = "none"
    EVENTS = "events"
    SHORT_LIVED = "short-lived"
    TABLE = "table"
    DURABLE = "durable"


TEMPLATES: Final[Mapping[Template, Mapping[str, str]]] = {
    Template.NONE: {},
    Template.EVENTS: {"cleanup.policy": "delete", "retention.ms": str(7 * 24 * HOUR_MS)},
    Template.SHORT_LIVED: {
        "cleanup.policy": "delete",
        "retention.ms": str(HOUR_MS),
        "segment.ms": str(HOUR_MS // 6),
    },
    Template.TABLE: {"cleanup.policy": "compact"},
    Template.DURABLE: {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"},
}
TEMPLATE_HELP: Final = (
    "events: kept 7 days; short-lived: an hour; table: newest record of each key; "
    "durable: acks=all needs two replicas"
)
