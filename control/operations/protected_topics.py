"""Topics in which Kafka, Partiscope and other programs keep their own state."""

from collections.abc import Mapping
from typing import Final

from control.operations.errors import ProtectedTopicError

OWN_PREFIX: Final = "__partiscope_"
_KAFKAS: Final[Mapping[str, str]] = {
    "__consumer_offsets": "the committed offsets of every group",
    "__transaction_state": "the state of every transaction",
    "__share_group_state": "the state of every share group",
    "__cluster_metadata": "the cluster's metadata",
    "__remote_log_metadata": "where segments lie in remote storage",
}
_OF_OTHERS: Final = "_"
"""So begin topics in which other programs (Schema Registry, Connect …) keep their state."""
_FATAL: Final[Mapping[str, str]] = {
    "delete": "would be lost for good",
    "delete_records": "would be lost for good",
    "add_partitions": "would become unreachable: their keys would belong to other partitions",
    "produce": "would be overwritten by records that its owner cannot read",
    "create_topic": "belongs there: its owner creates it, with the settings that it needs",
}
_FATAL_CONFIGS: Final = ("cleanup.policy", "retention.ms", "retention.bytes")
"""Under compaction Kafka's own topics ignore a retention; ours would lose records by it."""


def check_topic(act: str, topic: str) -> None:
    """``act``: delete, delete_records, add_partitions, produce or create_topic.

    :raises ProtectedTopicError: Kafka, or Partiscope, would lose what it keeps there.
    """
    kept = _kept_in(topic)
    if kept:
        raise ProtectedTopicError(topic, f"{kept} {_FATAL[act]}")


def check_configs(topic: str, configs: Mapping[str, object]) -> None:
    """:raises ProtectedTopicError: the topic's owner would lose what it keeps there."""
    kept = _kept_in(topic)
    wrong = [name for name in configs if name in _FATAL_CONFIGS]
    if kept and wrong:
        raise ProtectedTopicError(topic, f"with another {', '.join(wrong)} {kept} would be lost")


def doubts(topic: str) -> tuple[str, ...]:
    """Warnings before a change of a topic that is not an ordinary one."""
    if kept := _kept_in(topic):
        return (f"▲ {topic} is internal: it holds {kept}",)
    if topic.startswith(_OF_OTHERS):
        return (f"▲ {topic} may be another program's own: names that begin with _ often are",)
    return ()


def _kept_in(topic: str) -> str:
    """Data that the owner of an internal topic keeps there; empty: it is an ordinary topic."""
    if topic.startswith(OWN_PREFIX):
        return "Partiscope's figures and reassignments"
    return _KAFKAS.get(topic, "")
