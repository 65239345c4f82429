"""Resume a reassignment that is paused."""

from dataclasses import dataclass
from typing import ClassVar

from control.move.commands import ControlAction
from control.operations.catalogue.forms import OperationForm
from control.operations.catalogue.moves.control import MoveControl, move_form


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(MoveControl):
    """It goes on with what has not begun."""

    FORM: ClassVar[OperationForm] = move_form(
        "resume", key="space", title="Resume", help="Partitions that have not begun continue."
    )
    ACTION: ClassVar[ControlAction] = ControlAction.RESUME
