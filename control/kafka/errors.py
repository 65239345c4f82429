"""Errors between us and a cluster. Each one tells an operator what to do next.

KafkaPortError                 title, reason, next step
├── UnreachableError           no broker answered (or not in time)
│   ├── LoginError             the broker does not accept the user, password, token or mechanism
│   ├── TlsError               the listener's certificate, or ours, is not accepted
│   ├── WrongClusterError      another cluster answers at the address
│   └── NoBusError             no bus is known for the cluster's operations
├── UnsupportedApiError        the broker does not serve an API that we need
├── IncompleteAnswerError      an answer lacks what was asked for
├── NoSuchPartitionError       a topic does not have the partition that was named
├── RecordTooLargeError        a record is larger than its topic takes
├── UnsendableLinesError       lines that their topic does not take
└── RefusedError               the cluster answered with an error code
    ├── NoSuchNameError        there is no topic or group of a name
    └── NoTimesError           records of format 0 are not found by time
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from control.model.command_line import typed
from control.model.ids import no_partition_words, other_names


class KafkaPortError(Exception):
    """Base of the tree; `str()` is one line for a log, the parts are for a screen."""

    def __init__(self, title: str, *, reason: str, next_step: str) -> None:
        super().__init__(f"{title}: {reason}")
        self.title = title
        self.reason = reason
        self.next_step = typed(next_step)

    @property
    def kind(self) -> str:
        """The reason without what is true of one case only, to count errors by."""
        return self.title


class UnreachableError(KafkaPortError):
    """No broker could be reached, or the answer did not come in time."""

    is_for_good = False
    """Waiting does not help."""


class LoginError(UnreachableError):
    """SASL failed. Not tried again: some brokers lock a user out."""


class TlsError(UnreachableError):
    """The TLS handshake failed in a way that trying again does not mend."""


class WrongClusterError(UnreachableError):
    """Another cluster answers at an address; nothing known of the old one applies to it."""

    is_for_good = True

    def __init__(self, where: str, *, wanted: str, found: str) -> None:
        super().__init__(
            f"another cluster answers at {where}",
            reason=f"cluster {wanted} is meant, and {found} listens there now",
            next_step="start the cluster that is meant, or name the other one (`--bootstrap`)",
        )


class NoBusError(UnreachableError):
    """Operations that take time need a bus, and an executor that reads it."""

    is_for_good = True

    def __init__(self, bootstrap: str) -> None:
        super().__init__(
            f"nobody carries out operations on {bootstrap} from here",
            reason="no operations bus is known for this cluster",
            next_step=f"`partiscope up --bootstrap {bootstrap}` starts one, with a data directory "
            "of its own; or name the one that runs by --bus HOST:PORT",
        )


class UnsupportedApiError(KafkaPortError):
    """Broker and product have no version of an API in common."""

    def __init__(self, api_name: str, *, served: tuple[int, int] | None) -> None:
        ranges = "not at all" if served is None else f"in versions {served[0]} to {served[1]}"
        super().__init__(
            f"the broker cannot {api_name}",
            reason=f"it serves this API {ranges}",
            next_step="use a cluster of Apache Kafka 3.3 or newer for this operation",
        )


class IncompleteAnswerError(KafkaPortError):
    """An answer does not tell of ``what``, neither good nor bad."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the cluster did not tell of {what}",
            reason="its answer lacks it",
            next_step="ask again; if it stays so, read the log of the broker",
        )


class RefusedError(KafkaPortError):
    """The cluster refused with `code`; `what` names the thing that was refused."""

    def __init__(self, code: ErrorCode, *, what: str, message: str | None = None) -> None:
        self.code = code
        self.what = what
        self.message = message or REASONS.get(code) or code.name.replace("_", " ")
        super().__init__(
            f"{what} was refused",
            reason=f"{self.message} ({code.name.upper()})",
            next_step=NEXT_STEPS.get(code, "read the reason, correct the request, try again"),
        )

    @property
    def kind(self) -> str:
        """Kafka's name of the error."""
        return self.code.name.upper()


class NoSuchNameError(RefusedError):
    """A topic or group was named that is not among those that are ``known``."""

    def __init__(self, kind: str, name: str, *, known: Iterable[str]) -> None:
        super().__init__(_UNKNOWN[kind], what=f"{kind} {name}")
        self.title, self.reason = f"there is no {kind} {name!r}", other_names(name, known)
        self.args = (f"{self.title}; {self.reason}",)


class NoTimesError(RefusedError):
    """A time was asked for, and records of format 0 have none; `what` names the partition."""

    def __init__(self, what: str) -> None:
        super().__init__(
            ErrorCode.unsupported_for_message_format,
            what=what,
            message="it keeps records of format 0, which have no time",
        )
        self.next_step = "start from an offset instead of a time: earliest, latest or a number"


class NoSuchPartitionError(KafkaPortError):
    """A partition was named that its topic, which has ``count``, does not have."""

    def __init__(self, topic: str, partition: object, *, count: int) -> None:
        words = no_partition_words(topic, partition, count)
        super().__init__(words, reason="partitions count from 0", next_step="name one of these")
        self.args = (words,)


class RecordTooLargeError(KafkaPortError):
    """A record that its topic does not take, told before it is sent."""

    def __init__(self, topic: str, *, size_bytes: int, most_bytes: int) -> None:
        words = (
            f"a record of {size_bytes:,} bytes is not sent: {topic} takes at most {most_bytes:,} "
            "(max.message.bytes)"
        )
        super().__init__(
            words,
            reason="the broker would refuse it",
            next_step="make it smaller, compress it, or raise max.message.bytes of the topic",
        )
        self.args = (words,)

    @property
    def kind(self) -> str:
        """Without the size of this one."""
        return "larger than max.message.bytes"


class UnsendableLinesError(KafkaPortError):
    """Lines, by number, that their topic does not take; those of a file are judged beforehand."""

    NAMED_MAX: Final = 3

    def __init__(self, errors: Mapping[int, KafkaPortError], *, is_file: bool) -> None:
        named = list(errors.items())[: self.NAMED_MAX]
        words = [f"line {number:,}: {error}" for number, error in named]
        left = len(errors) - len(named)
        words += [f"{left:,} more lines that cannot be sent"] if left else []
        super().__init__(
            "; ".join(words),
            reason="nothing was sent" if is_file else "the lines above it were sent",
            next_step=next(iter(errors.values())).next_step,
        )


_ASK_FOR_RIGHT: Final = (
    "`partiscope status` names the missing right; ask for it, or use another user"
)
_UNKNOWN: Final = {
    "topic": ErrorCode.unknown_topic_or_partition,
    "group": ErrorCode.group_id_not_found,
}
REASONS: Final[dict[ErrorCode, str]] = {
    ErrorCode.group_subscribed_to_topic: "a member of the group reads this topic",
    ErrorCode.non_empty_group: "the group has members",
}
"""Where Kafka answers with a code alone."""
NEXT_STEPS: Final[dict[ErrorCode, str]] = {
    ErrorCode.topic_already_exists: "choose another name, or use the topic that is there",
    ErrorCode.unknown_topic_or_partition: "check the name; `partiscope topics list` shows all",
    ErrorCode.invalid_replication_factor: "ask for at most as many replicas as there are brokers",
    ErrorCode.invalid_partitions: "ask for more partitions than the topic has; it never loses one",
    ErrorCode.invalid_config: "correct the config that the reason names",
    ErrorCode.no_reassignment_in_progress: "nothing to do: the partition is not moving",
    ErrorCode.reassignment_in_progress: "wait for the running reassignment, or cancel it",
    ErrorCode.non_empty_group: "stop the group's consumers first",
    ErrorCode.group_subscribed_to_topic: "stop the group's consumers of this topic first",
    ErrorCode.group_id_not_found: "check the name; `partiscope groups list` shows all",
    ErrorCode.invalid_record: "give the record a key: a topic with cleanup.policy=compact takes "
    "no record without one",
    ErrorCode.not_enough_replicas: "bring the missing brokers back, or lower min.insync.replicas",
    ErrorCode.cluster_authorization_failed: _ASK_FOR_RIGHT,
    ErrorCode.topic_authorization_failed: _ASK_FOR_RIGHT,
    ErrorCode.group_authorization_failed: _ASK_FOR_RIGHT,
}


def raise_if_refused(code: ErrorCode, *, what: str, message: str | None = None) -> None:
    """Turn a protocol error code into RefusedError.

    :raises RefusedError: `code` is not NONE.
    """
    if code is not ErrorCode.none:
        raise RefusedError(code, what=what, message=message)


def only(items: Sequence[Any], *, what: str) -> Any:
    """The single part of an answer to a question about one thing.

    :raises IncompleteAnswerError: there is none, or more than one.
    """
    if len(items) != 1:
        raise IncompleteAnswerError(what)
    return items[0]
