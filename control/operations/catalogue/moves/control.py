"""Base of the operations on one reassignment, which ask the executor on the bus."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from control.kafka.acl import Lacking
from control.kafka.admin.reassignments import REASSIGN_RIGHTS
from control.move.commands import ControlAction
from control.move.state import OperationState
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FormField, OperationForm
from control.operations.catalogue.operation import (
    Change,
    Done,
    Effect,
    Operation,
    OperationContext,
)
from control.operations.errors import MoveEndedError

MOVE: Final = FormField(name="move", label="Reassignment", is_required=True)


def move_form(
    name: str,
    *fields: FormField,
    key: str,
    title: str,
    help: str,  # noqa: A002 - the form's own word
    confirmation: Confirmation = Confirmation.NONE,
) -> OperationForm:
    """The form of an operation on one reassignment: buttons and keys of its view fill it in."""
    return OperationForm(
        name=name,
        key=key,
        title=title,
        help=help,
        fields=(MOVE, *fields, REASON),
        confirmation=confirmation,
        submit_label=title,
        view="move",
        needs="reassign",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveOperation(Operation):
    """An operation on one reassignment. The bus must answer, the cluster need not."""

    RIGHTS: ClassVar[Lacking] = REASSIGN_RIGHTS

    move: str
    """Its operation id."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """The command of a form's checked fields."""
        return cls(**fields)

    async def require_answer(self, context: OperationContext) -> None:
        """:raises KafkaPortError: the bus does not answer, or none is known."""
        await context.moves.require_answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveControl(MoveOperation):
    """An act on a reassignment that runs."""

    ACTION: ClassVar[ControlAction]

    @property
    def what(self) -> str:
        """For the journal and in questions."""
        return f"{self.ACTION.value} {self.move}"

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """Tell the effect on the reassignment.

        :raises InvalidInputError: there is none of this name.
        :raises MoveEndedError: it has ended.
        """
        state = await context.moves.get(self.move)
        if state.is_finished:
            verb = self.ACTION.value.partition("_")[0]
            raise MoveEndedError(self.move, str(state.outcome), verb)
        return Effect(command=self, changes=(self._change(state),))

    async def perform(self, context: OperationContext) -> Done:
        """Ask the executor."""
        return await self._ask(context)

    async def _ask(self, context: OperationContext, throttle: str | None = None) -> Done:
        """:raises ActRefusedError: the executor says no within a moment."""
        moves = context.moves
        before = await moves.get(self.move)
        asked_ms = await moves.control(
            self.move,
            self.ACTION,
            reason=self.reason,
            throttle=throttle,
            confirmed=context.confirmed,
        )
        await moves.require_taken(self.move, self.ACTION, asked_ms, before)
        return Done(words=f"asked to {self.what}")

    def _change(self, state: OperationState) -> Change:
        return Change("phase", state.phase.value, self.ACTION.value, self.FORM.help)
