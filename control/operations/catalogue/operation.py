"""An operation: a typed command that knows its form, rights and preview, and how it is performed.

One file of this folder is one operation. ``OperationSession`` takes an operation from
Asked (an instance) to Previewed (an ``Effect``, whose command is frozen) to Done, and judges there
what may be done; nothing in this folder judges or writes to the journal.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, NamedTuple, Self, TypeVar

from control.kafka.acl import Lacking
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.wire import answers_soon
from control.model.watched_cluster import Site, WatchedCluster
from control.move.check import Check, Verdict
from control.operations.bus.client import OperationsClient
from control.operations.catalogue.forms import OperationForm
from control.operations.errors import ConflictError, StalePreviewError
from control.operations.reassignment.planning import Planning, Preview

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
    """Result of an operation, and the view that shows it (empty: none)."""

    words: str
    view: str = ""
    """A name of ``control.views.paths.VIEWS``."""
    params: Mapping[str, str] = field(default_factory=dict)
    """Of its path."""
    lines: tuple[str, ...] = ()
    """Outcome of each row or part, where there were several: they stay until they are closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationContext:
    """The clients that operations use, of one cluster and one bus."""

    admin: KafkaAdmin
    moves: OperationsClient
    """Asks the executor for what takes time."""
    planning: Planning
    site: Site
    """The cluster, as the bus names it."""
    outages: str = ""
    """As ``WatchedCluster`` has it."""
    confirmed: str = ""
    """The word that was typed; commands carry it to the executor, which judges it as well."""
    read: dict[str, Any] = field(default_factory=dict)
    """What one preview has read of the cluster already: several rows need it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(ABC):
    """One operation as somebody asked for it. Subclasses are frozen dataclasses."""

    FORM: ClassVar[OperationForm]
    RIGHTS: ClassVar[Lacking]
    """ACL operations that a principal needs, each with the kind of resource."""
    IS_KEPT: ClassVar[bool] = True
    """Whether a face finds its preview again by name."""
    IS_JOURNALED_BY_BUS: ClassVar[bool] = False
    """Whether its command on the bus is its line of the journal."""
    IS_BRAKE: ClassVar[bool] = False
    """Whether it only takes load off the cluster: no name is typed, so that it is at hand in an
    emergency."""

    reason: str = ""

    @classmethod
    @abstractmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields (``OperationForm.parse``)."""

    @property
    @abstractmethod
    def what(self) -> str:
        """In the journal and in refusals: ``create topic orders``."""

    @property
    def form(self) -> OperationForm:
        """The form that asks for it."""
        return self.FORM

    @property
    def size(self) -> int:
        """Number of changes that a frozen command keeps for itself."""
        return 0

    @property
    def question(self) -> str:
        """The question to confirm: ``Cancel mv-3f9a21c4?``"""
        return f"{self.what[:1].upper()}{self.what[1:]}?"

    def word(self, watched: WatchedCluster) -> str:
        """The word to type before it is performed there; empty: none."""
        return "" if self.IS_BRAKE else watched.word_to_type(self.thing)

    @property
    def thing(self) -> str:
        """The name that must be typed because the operation destroys it; empty: nothing."""
        return ""

    @property
    def outcome(self) -> Mapping[str, str | int | None]:
        """Results so far, for the journal, beside what its preview says."""
        return {}

    @property
    def shortfall(self) -> str:
        """Rows that were not done though others were, for the journal; empty: none."""
        return ""

    def check(self) -> None:  # noqa: B027 - most operations have nothing to refuse
        """Refuse what nobody should do, before the cluster is asked.

        :raises OperationError: a protected topic.
        """

    async def require_answer(self, context: OperationContext) -> None:
        """Ask the cluster, or the bus, whether it answers.

        :raises KafkaPortError: it does not; told within seconds.
        """
        async with answers_soon(context.admin.wire.settings):
            await context.admin.describe_cluster()

    @abstractmethod
    async def preview(self, context: OperationContext) -> "Effect[Self]":
        """The changes that it would make now; nothing is changed.

        :raises InvalidInputError: a value that the cluster cannot have.
        :raises KafkaPortError: the cluster refuses or does not answer.
        """

    async def require_fresh(self, context: OperationContext, facts: Hashable) -> None:
        """Look once more, just before it is performed.

        :raises StalePreviewError: the preview rests on ``facts`` that are no longer so.
        :raises ConflictError: it may no longer be begun.
        """
        if facts is None:
            return
        now = await self.preview(context)
        if now.facts != facts:
            told = now.lines[0] if now.lines else "nothing to change: the cluster has it already"
            raise StalePreviewError(self.what, f"the cluster has changed since its preview: {told}")

    @abstractmethod
    async def perform(self, context: OperationContext) -> Done:
        """Change the cluster as the frozen command says.

        :raises OperationError: it was done in part.
        :raises KafkaPortError: the cluster refuses or does not answer.
        """


AnOperation = TypeVar("AnOperation", bound=Operation, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect(Generic[AnOperation]):
    """Changes that an operation would make."""

    command: AnOperation
    """What is performed: the command with everything resolved that the preview shows."""
    changes: tuple[Change, ...]
    """Empty: the cluster is in the wanted state already."""
    notes: tuple[str, ...] = ()
    """What the operator should consider, and what is left alone."""
    facts: Hashable = None
    """State of the cluster on which the preview rests. Where it differs at the confirmation, the
    preview is stale."""
    summary: str = ""
    """What it costs in one line, beside other rows; empty: its changes say so."""
    review: Preview | None = None
    """Of a reassignment: figures and pre-flight."""
    refusal: ConflictError | None = None
    """Why it cannot be performed as it is."""

    @property
    def size(self) -> int:
        """Number of changes, those of a plan included."""
        plan = self.review.proposal.changes if self.review else ()
        return len(self.changes) + len(plan) + self.command.size

    @property
    def doubts(self) -> tuple[Check, ...]:
        """Checks of pre-flight that did not pass."""
        checks = self.review.checks if self.review else ()
        return tuple(check for check in checks if check.verdict is not Verdict.OK)

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
