"""Why an operation did not happen.

OperationError                 title, reason, next step
├── InvalidInputError          a form or flag that cannot be; names the field
├── ReadOnlyError              this session may only look
├── ProtectedTopicError        Kafka, or Partiscope, keeps its own state in the topic
├── NotConfiguredError         a command about a cluster that the settings do not know
├── ProofKeyError              the installation's key cannot be read or made
├── ChainFileError           the head of the journal's chain cannot be read or written
├── NoRightError               the principal may not do it on this cluster
├── NotConfirmedError          the typed confirmation does not match
├── StalePreviewError          the cluster, or the clock, has moved on since the preview
├── PreviewGoneError           a preview that is no longer kept
├── NotJournaledError          the journal cannot be written, so nothing is changed
├── GroupActiveError           the group has members
├── ActRefusedError            the executor does not do what was asked of a reassignment
├── MoveEndedError             the reassignment has ended: nothing of it can be stopped
├── ConflictError              another operator moves the same partitions
├── ElsewhereError             a move of another cluster that is watched as well
├── NotDrainedError            no plan empties the broker wholly
├── NotReviewedError           another alternative was chosen than the one that is shown
├── PlanGoneError              a plan that is no longer kept
├── NothingDoneError           no row of several could be done
├── SendRunsError              a send to the topic runs already
├── PartlyDoneError            some parts of one operation were done, others refused
├── NotElectedError            some partitions kept their leader
└── FencedError                another executor owns the operations now
"""

from collections.abc import Sequence
from typing import Final

from control.model.command_line import typed
from control.model.units import counted


class OperationError(Exception):
    """Base of the tree; `str()` is one line, the parts are for a screen."""

    def __init__(self, title: str, *, reason: str, next_step: str) -> None:
        reason = typed(reason)
        super().__init__(f"{title}: {reason}")
        self.title = title
        self.reason = reason
        self.next_step = typed(next_step)


class InvalidInputError(OperationError):
    """`fields` maps a field's name to what is wrong with it."""

    def __init__(self, fields: dict[str, str]) -> None:
        fields = {name: typed(text) for name, text in fields.items()}
        reason = "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in fields.items())
        super().__init__("wrong input", reason=reason, next_step="correct it and try again")
        self.fields = fields


class ReadOnlyError(OperationError):
    """Started with --read-only, or the settings say so."""

    def __init__(self, what: str) -> None:
        next_step = "start without --read-only to change the cluster"
        super().__init__(
            f"{what} was not done", reason="this session only reads", next_step=next_step
        )


class ProtectedTopicError(OperationError):
    """Some topics are not the operator's to change."""

    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(
            f"{topic} was left as it is",
            reason=reason,
            next_step="choose another topic; if you must change this one, use kafka-topics.sh",
        )


class NotConfiguredError(OperationError):
    """A command on the bus names a cluster that this installation does not know."""

    def __init__(self, bootstrap: str, known: Sequence[str]) -> None:
        super().__init__(
            "the command was not carried out",
            reason=(
                f"the executor's settings know no cluster at {bootstrap!r} "
                f"(they know {', '.join(known) or 'none'})"
            ),
            next_step="add it there as [clusters.NAME] with its bootstrap, then ask again",
        )


class ProofKeyError(OperationError):
    """Without its key an installation cannot prove what it writes to the bus."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(
            "nothing was written to the bus",
            reason=f"the installation's key {file!r} cannot be used: {why}",
            next_step="correct its rights, or restore it; name another by proof.key_file",
        )


class ChainFileError(OperationError):
    """Without the head of its chain a line of the journal cannot be linked."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(
            "nothing was written to the journal",
            reason=f"the head of its chain {file!r} cannot be used: {why}",
            next_step="correct its rights or restore it; if you move it away, a new chain begins",
        )


class NotConfirmedError(OperationError):
    """The name was not typed that a destructive change, or one on a production cluster, needs."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(
            f"{what} was not done",
            reason="the name was not typed to confirm it",
            next_step=f"type {name} to confirm",
        )


class NoRightError(OperationError):
    """`lacks` names the ACL that is missing and who grants it."""

    def __init__(self, what: str, lacks: str) -> None:
        next_step = "ask for the right, then try again"
        super().__init__(f"{what} was not done", reason=lacks, next_step=next_step)


class StalePreviewError(OperationError):
    """The cluster has changed since the preview, so something else would happen."""

    def __init__(self, what: str, reason: str) -> None:
        next_step = "preview it again, then confirm"
        super().__init__(f"{what} was not done", reason=reason, next_step=next_step)


class PreviewGoneError(OperationError):
    """Previews are kept for a while, the newest of them."""

    def __init__(self) -> None:
        reason = "newer previews replaced it, or the program restarted"
        super().__init__("this preview is gone", reason=reason, next_step="preview it again")


class NotJournaledError(OperationError):
    """An operation without a trace is refused, unless the settings have it wait."""

    def __init__(self, what: str, reason: str, held_s: float) -> None:
        super().__init__(
            f"{what} was not done",
            reason=f"the journal cannot be written, tried for {held_s:.0f} s: {reason}",
            next_step=(
                "bring the brokers of the bus back (`partiscope status`), then try again; "
                'with the setting journal_hold = "unlimited" operations wait instead'
            ),
        )


class GroupActiveError(OperationError):
    """Members commit for themselves; ``members`` name them: all, or those that read a topic."""

    NAMED_MAX: Final = 10
    """So many are named; the rest is counted."""

    def __init__(self, group: str, members: Sequence[str], *, of_topic: str | None = None) -> None:
        read = "reads" if len(members) == 1 else "read"
        count = counted(len(members), "member") + (f" that {read} {of_topic}" if of_topic else "")
        named = ", ".join(members[: self.NAMED_MAX])
        more = ", …" if len(members) > self.NAMED_MAX else ""
        super().__init__(
            f"{group} was left as it is",
            reason=f"it has {count}: {named}{more}",
            next_step="stop its consumers first, then try again",
        )


class MoveEndedError(OperationError):
    """A reassignment that has ended can only be rolled back."""

    def __init__(self, operation_id: str, outcome: str, verb: str) -> None:
        super().__init__(
            f"{operation_id} is {outcome}",
            reason=f"there is nothing to {verb}",
            next_step="`partiscope moves` lists all; what has ended can only be rolled back",
        )


class ActRefusedError(OperationError):
    """The executor's settings, or a later act, speak against it."""

    def __init__(self, operation_id: str, words: str) -> None:
        super().__init__(
            f"{operation_id} goes on as before",
            reason=words,
            next_step=f"`partiscope moves watch {operation_id}` shows it",
        )


class ConflictError(OperationError):
    """Somebody else's reassignment moves a partition of this one."""

    def __init__(self, reason: str) -> None:
        next_step = "watch it with `partiscope moves`, then plan again"
        super().__init__("the reassignment was not begun", reason=reason, next_step=next_step)


class ElsewhereError(OperationError):
    """Clusters may share a bus: who looks at one of them acts on that one alone."""

    def __init__(self, operation_id: str, bootstrap: str) -> None:
        super().__init__(
            f"{operation_id} belongs to another cluster",
            reason=f"it moves partitions of {bootstrap}",
            next_step="choose that cluster (c), then open it there",
        )


class NotDrainedError(OperationError):
    """A drain begins only where a plan empties the broker wholly, and ends only where others can
    do without it; ``what`` was not done."""

    def __init__(self, broker: int, reason: str, *, what: str = "drained") -> None:
        super().__init__(
            f"broker {broker} was not {what}, and nothing was changed",
            reason=reason,
            next_step="change what stands in the way, then drain it again",
        )


class NotReviewedError(OperationError):
    """Nothing changes that was not seen before; ``by_hand``: nor without what was typed since."""

    def __init__(self, *, by_hand: bool = False) -> None:
        reason = "the preview of the chosen alternative is not ready yet"
        next_step = "wait until it is shown, then confirm"
        if by_hand:
            reason = "the placement by hand is not checked yet, or was refused"
            next_step = "wait for the check, correct the placement, or empty the field"
        super().__init__("the reassignment was not begun", reason=reason, next_step=next_step)


class PlanGoneError(OperationError):
    """Plans are kept by name, the last few of them."""

    def __init__(self) -> None:
        reason = "newer plans replaced it, or the program restarted"
        super().__init__("this plan is gone", reason=reason, next_step="plan again")


class NothingDoneError(OperationError):
    """`lines` say why, a row each."""

    def __init__(self, what: str, lines: Sequence[str]) -> None:
        reason = "; ".join(lines)
        super().__init__(f"{what} was not done", reason=reason, next_step="preview it again")


class SendRunsError(OperationError):
    """A session sends to a topic once at a time."""

    def __init__(self, topic: str, reason: str) -> None:
        next_step = "wait until it has ended, or stop it in the produce view of its topic"
        super().__init__(f"no other send to {topic} was begun", reason=reason, next_step=next_step)


class PartlyDoneError(OperationError):
    """`done` says what was done; `refusals` are the cluster's words, one per part."""

    def __init__(self, done: str, refusals: Sequence[str]) -> None:
        next_step = "preview it again: the preview shows what is left"
        super().__init__(done, reason=f"not in {'; '.join(refusals)}", next_step=next_step)


class NotElectedError(OperationError):
    """`refusals` are the cluster's words, one per partition."""

    def __init__(self, refusals: Sequence[str]) -> None:
        count = len(refusals)
        kept = "1 partition kept its leader" if count == 1 else f"{count:,} partitions kept theirs"
        next_step = "bring back their first replicas, then elect again"
        super().__init__(kept, reason="; ".join(refusals), next_step=next_step)


class FencedError(OperationError):
    """The group gave the operations to another executor (or none) in the meantime."""

    def __init__(self, reason: str) -> None:
        next_step = "nothing to do: the owner goes on with the operation"
        super().__init__(
            "another executor owns the operations now", reason=reason, next_step=next_step
        )
