"""Roles: the operations that somebody may do on a cluster, on which topics, and whether records may
be read. Those here are built in; settings declare others."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

EVERY_TOPIC: Final = ("*",)
EVERYWHERE: Final = "*"
"""Stands for every cluster that has no role of its own."""

OPERATOR_OPERATIONS: Final = frozenset({
    "reassign", "rollback", "pause", "resume", "cancel", "cancel_after_wave", "throttle",
    "clear_throttles", "elect", "cordon", "uncordon", "drain",
    "produce", "reset_offsets", "silence", "end_silence",
})  # fmt: skip
ADMIN_OPERATIONS: Final = frozenset({
    "create_topic", "add_partitions", "configure_topic", "delete_topic", "delete_records",
    "delete_group", "delete_offsets", "configure_broker", "teach_acks",
})  # fmt: skip
"""Beside those of an operator."""
EVERY_OPERATION: Final = OPERATOR_OPERATIONS | ADMIN_OPERATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Named rights."""

    name: str
    operations: frozenset[str] = frozenset()
    """Names of forms of the catalogue."""
    topics: tuple[str, ...] = EVERY_TOPIC
    """Patterns of topics that it may change and read."""
    may_read_records: bool = False
    sees_unmasked: bool = False
    """Whether it reads these records as they are, whatever masking rules say; no built-in role."""

    def lacks(self, operation: str, topics: Collection[str] | None, *, is_brake: bool) -> str:
        """Why an operation on ``topics`` is not in this role; empty: it is. ``topics`` None: it
        names none, or all; only a brake is in a role of some topics then."""
        if operation not in self.operations:
            return f"this takes the role {least_role(operation)}"
        if self.topics == EVERY_TOPIC or is_brake:
            return ""
        if topics is None:
            return f"the role is for topics {', '.join(self.topics)} alone"
        return self._outside(topics)

    def lacks_records(self, topic: str) -> str:
        """Why records of a topic may not be read; empty: they may."""
        if not self.may_read_records:
            return "this takes a role that reads records, such as operator"
        return self._outside((topic,))

    def sees_all_of(self, topic: str) -> bool:
        """Whether masking rules leave records of a topic as they are."""
        return self.sees_unmasked and not self.lacks_records(topic)

    def _outside(self, topics: Iterable[str]) -> str:
        outside = sorted(it for it in topics if not any(fnmatchcase(it, p) for p in self.topics))
        named = ", ".join(outside[:3]) + (", …" if len(outside) > 3 else "")
        return f"the role is for topics {', '.join(self.topics)}, not {named}" if outside else ""


VIEWER: Final = Role(name="viewer")
OPERATOR: Final = Role(name="operator", operations=OPERATOR_OPERATIONS, may_read_records=True)
ADMIN: Final = Role(name="admin", operations=EVERY_OPERATION, may_read_records=True)
BUILT_IN: Final[Mapping[str, Role]] = {role.name: role for role in (VIEWER, OPERATOR, ADMIN)}


def least_role(operation: str) -> str:
    """The built-in role that is enough."""
    return (OPERATOR if operation in OPERATOR_OPERATIONS else ADMIN).name
