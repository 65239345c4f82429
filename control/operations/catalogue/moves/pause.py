"""Pause a reassignment."""

from dataclasses import dataclass
from typing import ClassVar

from control.move.commands import ControlAction
from control.operations.catalogue.forms import OperationForm
from control.operations.catalogue.moves.control import MoveControl, move_form


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(MoveControl):
    """Partitions that are on their way arrive."""

    FORM: ClassVar[OperationForm] = move_form(
        "pause", key="space", title="Pause", help="Partitions in flight arrive; no other begins."
    )
    IS_BRAKE: ClassVar[bool] = True
    ACTION: ClassVar[ControlAction] = ControlAction.PAUSE
