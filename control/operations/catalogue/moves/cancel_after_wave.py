"""Cancel a reassignment once its wave has arrived."""

from dataclasses import dataclass
from typing import ClassVar

from control.move.commands import ControlAction
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.catalogue.moves.control import MoveControl, move_form


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAfterWave(MoveControl):
    """No bytes that were copied are thrown away."""

    FORM: ClassVar[OperationForm] = move_form(
        "cancel_after_wave",
        key="X",
        title="Cancel after the wave",
        help="Partitions in flight arrive; no other begins.",
        confirmation=Confirmation.PREVIEW,
    )
    IS_BRAKE: ClassVar[bool] = True
    ACTION: ClassVar[ControlAction] = ControlAction.CANCEL_AFTER_WAVE

    @property
    def what(self) -> str:
        """For the journal and in questions."""
        return f"cancel {self.move} after this wave"
