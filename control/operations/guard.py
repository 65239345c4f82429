"""Whether something may be changed: judged here alone, for page, terminal and command line.

A read-only cluster is left alone. What changes a production cluster wants the cluster's name, and
what destroys wants the name of what it destroys. What stops a reassignment wants no name: in an
emergency it must be at hand. A face asks for the word; it does not judge.
"""

from collections.abc import Mapping
from typing import Final

from control.model.fleet import WatchedCluster
from control.operations.errors import NotConfirmedError, ProtectedTopicError, ReadOnlyError

BRAKES: Final = frozenset({"pause", "cancel", "cancel_after_wave"})
"""Acts on a running reassignment that only take load off the cluster."""
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
    "add_partitions": "could not be found any more: its keys would belong to other partitions",
    "produce": "would be overwritten by records that its owner cannot read",
    "create_topic": "belongs there: its owner creates it, with the settings that it needs",
}
_FATAL_CONFIGS: Final = ("cleanup.policy", "retention.ms", "retention.bytes")
"""Under compaction Kafka's own topics ignore a retention; ours would lose records by it."""


def check_change(watched: WatchedCluster, what: str, *, typed: str = "", thing: str = "") -> None:
    """``typed`` is what the operator has typed to confirm; ``thing`` is what would be destroyed.

    :raises ReadOnlyError: nothing may be changed there.
    :raises NotConfirmedError: another word must be typed.
    """
    _check(watched, what, typed=typed, word=watched.word_to_type(thing))


def check_control(watched: WatchedCluster, action: str, what: str, *, typed: str = "") -> None:
    """As ``check_change``, of an act on a running reassignment: pause, resume, throttle …"""
    _check(watched, what, typed=typed, word=word_for_control(watched, action))


def word_for_control(watched: WatchedCluster, action: str) -> str:
    """What must be typed before that act on a running reassignment; empty: nothing."""
    return "" if action in BRAKES else watched.word_to_type()


def _check(watched: WatchedCluster, what: str, *, typed: str, word: str) -> None:
    if watched.is_read_only:
        raise ReadOnlyError(what)
    if word and typed != word:
        raise NotConfirmedError(what, word)


def check_topic(act: str, topic: str) -> None:
    """``act``: delete, add_partitions, produce or create_topic.

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


def topic_doubt(topic: str) -> str:
    """What to think of before a topic is changed that is not an ordinary one; empty: nothing."""
    if kept := _kept_in(topic):
        return f"▲ {topic} is internal: it holds {kept}"
    if topic.startswith(_OF_OTHERS):
        return f"▲ {topic} may be another program's own: names that begin with _ often are"
    return ""


def _kept_in(topic: str) -> str:
    """What the owner of an internal topic keeps there; empty: it is an ordinary topic."""
    if topic.startswith(OWN_PREFIX):
        return "what Partiscope knows of figures and reassignments"
    return _KAFKAS.get(topic, "")
