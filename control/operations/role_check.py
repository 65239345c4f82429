"""Whether the role of who acts has an operation, on these topics, or reads records."""

from control.access.login import acting
from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue.moves.reassign import Reassign
from control.operations.catalogue.moves.roll_back import RollBack
from control.operations.catalogue.operation import Effect, Operation
from control.operations.catalogue.several import Several
from control.operations.catalogue.topics.elect_leaders import ElectLeaders
from control.operations.catalogue.topics.produce import Produce
from control.operations.errors import NoRightError


def check_role(watched: WatchedCluster, command: Operation) -> None:
    """Before anything is asked of the cluster: the operation alone is judged.

    :raises NoRightError: the role has no such operation.
    """
    _check(watched, command, command)


def check_role_on_topics(watched: WatchedCluster, effect: Effect[Operation]) -> None:
    """Once the topics are known that a preview is about.

    :raises NoRightError: the role has no such operation, or not on these topics.
    """
    command = effect.command
    for part in command.parts.values() if isinstance(command, Several) else (command,):
        _check(watched, command, part, topics=topics_of(part, effect))


def check_role_named(watched: WatchedCluster, operation: str, what: str) -> None:
    """The same of an operation by its name.

    :raises NoRightError: the role has no such operation.
    """
    login = acting()
    if login is not None and (why := login.why_not(watched.name, operation)):
        raise NoRightError(what, why)


def check_records(watched: WatchedCluster, topic: str) -> None:
    """:raises NoRightError: who acts may not read records of this topic."""
    login = acting()
    if login is not None and (why := login.why_no_records(watched.name, topic)):
        raise NoRightError(f"reading {topic}", why)


def topics_of(command: Operation, effect: Effect[Operation]) -> frozenset[str] | None:
    """Topics that a previewed operation is about; None: it names none, or may be about all."""
    if isinstance(command, Produce):
        return frozenset({command.job.topic})
    if isinstance(command, ElectLeaders):
        return frozenset(key.topic for key in command.partitions)
    changes = None if effect.review is None else effect.review.proposal.changes
    if isinstance(command, Reassign):
        changes = command.proposal.changes
    elif isinstance(command, RollBack) and command.way is not None:
        changes = command.way.proposal.changes
    if changes is not None:
        return frozenset(change.topic for change in changes)
    topic = getattr(command, "topic", "")
    return frozenset({topic}) if topic else None


def _check(
    watched: WatchedCluster,
    command: Operation,
    part: Operation,
    topics: frozenset[str] | None = frozenset(),
) -> None:
    login = acting()
    if login is None:
        return
    why = login.why_not(watched.name, part.form.name, topics, is_brake=part.IS_BRAKE)
    if why:
        raise NoRightError(command.what, why)
