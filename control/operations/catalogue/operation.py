"""What an operation is: a typed command that knows its form, its rights, its preview and its doing.

One file of this folder is one operation. ``control.operations.session`` takes an operation from
Asked (an instance) to Previewed (an ``Effect``, whose command is frozen) to Done, and judges there
what may be done; nothing in this folder judges or writes to the journal.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Generic, NamedTuple, Self, TypeVar

from control.kafka.admin import KafkaAdmin
from control.kafka.collector.rights import Lacking
from control.operations.catalogue.forms import OperationForm

LINES_MAX: Final = 100
"""Operators do not read more lines; the rest is counted."""


class Change(NamedTuple):
    """One value that an operation changes."""

    name: str
    """A config, a partition, ``partitions``."""
    now: str | int | None
    """None: there is none."""
    then: str | int | None
    words: str = ""
    """The line on a screen; empty: ``name: now → then``."""

    @property
    def line(self) -> str:
        """As a screen shows it."""
        return self.words or f"{self.name}: {_value(self.now)} → {_value(self.then)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of an operation, and the view that shows it (empty: none)."""

    words: str
    view: str = ""
    """A name of ``control.views.paths.VIEWS``."""
    params: Mapping[str, str] = field(default_factory=dict)
    """Of its path."""


class Operation(ABC):
    """One operation as somebody asked for it. Subclasses are frozen dataclasses."""

    __slots__ = ()

    FORM: ClassVar[OperationForm]
    RIGHTS: ClassVar[Lacking]
    """ACL operations that a principal needs, each with the kind of resource."""
    reason: str
    IS_KEPT: ClassVar[bool] = True
    """Whether a face finds its preview again by name."""

    @classmethod
    @abstractmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields (``OperationForm.parse``)."""

    @property
    @abstractmethod
    def what(self) -> str:
        """In the journal and in refusals: ``create topic orders``."""

    @property
    def thing(self) -> str:
        """The name that must be typed because the operation destroys it; empty: nothing."""
        return ""

    @property
    def outcome(self) -> Mapping[str, str | int | None]:
        """What came of it so far, for the journal, beside what its preview says."""
        return {}

    def check(self) -> None:  # noqa: B027 - most operations have nothing to refuse
        """Refuse what nobody should do, before the cluster is asked.

        :raises OperationError: a protected topic.
        """

    @abstractmethod
    async def preview(self, admin: KafkaAdmin) -> "Effect[Self]":
        """What performing it now would change; nothing is changed.

        :raises InvalidInputError: a value that the cluster cannot have.
        :raises KafkaPortError: the cluster refuses or does not answer.
        """

    @abstractmethod
    async def perform(self, admin: KafkaAdmin) -> Done:
        """Change the cluster as the frozen command says.

        :raises OperationError: it was done in part.
        :raises KafkaPortError: the cluster refuses or does not answer.
        """


AnOperation = TypeVar("AnOperation", bound=Operation, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect(Generic[AnOperation]):
    """What an operation would change."""

    command: AnOperation
    """What is performed: the command with everything resolved that the preview shows."""
    changes: tuple[Change, ...]
    """Empty: the cluster is in the wanted state already."""
    notes: tuple[str, ...] = ()
    """What the operator should consider, and what is left alone."""
    facts: Hashable = None
    """State of the cluster on which the preview rests. Where it differs at the confirmation, the
    preview is stale."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Changes and notes as a screen shows them, at most ``LINES_MAX`` changes."""
        shown = [change.line for change in self.changes[:LINES_MAX]]
        left = len(self.changes) - LINES_MAX
        return (*shown, *([f"… and {left:,} more"] if left > 0 else []), *self.notes)


def _value(value: str | int | None) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else value or "empty"
