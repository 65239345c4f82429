"""Roll a reassignment back: partitions that it moved go back where they were."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from control.kafka.errors import KafkaPortError
from control.model.units import bytes_text, counted
from control.move.rollback_plan import RollbackPlan
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.catalogue.moves.control import MoveOperation, move_form
from control.operations.catalogue.operation import Change, Done, Effect, OperationContext
from control.operations.errors import ConflictError
from control.operations.reassignment.planning import Preview
from control.operations.reassignment.preflight import failures
from control.operations.reassignment.preview import preview_rollback


@dataclass(frozen=True, slots=True, kw_only=True)
class RollBack(MoveOperation):
    """It is cancelled first where it runs; what others have moved since stays."""

    FORM: ClassVar[OperationForm] = move_form(
        "rollback",
        key="u",
        title="Roll back",
        help="Partitions go back where they were, in the same waves.",
        confirmation=Confirmation.PREVIEW,
    )
    IS_JOURNALED_BY_BUS: ClassVar[bool] = True

    spread_s: float | None = None
    """Over at most so many seconds; None: as spread as it was."""
    way: RollbackPlan | None = None
    """Of the frozen command: what is submitted."""

    @property
    def what(self) -> str:
        """In questions and refusals."""
        return f"roll {self.move} back"

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """Say what goes back; a rollback of a cluster that does not answer waits for it.

        :raises OperationError: nothing of it could go back, or others move it.
        :raises KafkaPortError: the bus does not answer.
        """
        way = await context.moves.rollback_plan(self.move, spread_s=self.spread_s)
        frozen = replace(self, way=way)
        try:
            review = await preview_rollback(context.planning, context.moves, way)
        except KafkaPortError as error:
            changes = (Change(self.move, None, None, "Its moves are not known."),)
            doubt = f"▲ pre-flight: not known: {error}"
            return Effect(command=frozen, changes=changes, notes=(doubt,))
        refusal = None
        if review.is_refused:
            words = f"{self.move} cannot be rolled back now. {failures(review.checks)}"
            refusal = ConflictError(words)
        return Effect(
            command=frozen,
            changes=(Change(self.move, None, None, goes_words(way, review)),),
            review=review,
            refusal=refusal,
        )

    async def require_fresh(self, context: OperationContext, facts: Hashable) -> None:
        """Refuse before anything is cancelled.

        :raises OperationError: as ``preview``, or pre-flight refuses it.
        """
        refusal = (await self.preview(context)).refusal
        if refusal is not None:
            raise refusal

    async def perform(self, context: OperationContext) -> Done:
        """Submit it."""
        assert self.way is not None, "only a previewed rollback is performed"
        undo = await context.moves.rollback(
            self.way, reason=self.reason, confirmed=context.confirmed
        )
        return Done(words=f"{undo} rolls {self.move} back", view="move", params={"move": undo})


def goes_words(way: RollbackPlan, preview: Preview) -> str:
    """Size, pace and time of a rollback, in words."""
    first = "It is cancelled first: partitions in flight go back. " if way.is_running else ""
    proposal = preview.proposal
    if not proposal.changes:
        rest = "Everything else" if first else "Everything"
        return f"{first}{rest} is where it was already: nothing moves."
    partitions = counted(len(proposal.changes), "partition")
    go = "goes where it was" if len(proposal.changes) == 1 else "go where they were"
    if not proposal.moved_replicas:
        return f"{first}{partitions} {go}: no data moves."
    replicas, size = counted(proposal.moved_replicas, "replica"), bytes_text(proposal.moved_bytes)
    pace = preview.pace_words
    return f"{first}{partitions} {go}, in the same waves: {replicas}, {size}, {pace}."
