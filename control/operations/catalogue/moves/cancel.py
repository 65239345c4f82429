"""Cancel a reassignment at once."""

from dataclasses import dataclass
from typing import ClassVar

from control.move.commands import ControlAction
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.catalogue.moves.control import MoveControl, move_form


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(MoveControl):
    """Partitions that have arrived stay."""

    FORM: ClassVar[OperationForm] = move_form(
        "cancel",
        key="x",
        title="Cancel",
        help="Partitions in flight go back; those that have arrived stay.",
        confirmation=Confirmation.PREVIEW,
    )
    IS_BRAKE: ClassVar[bool] = True
    ACTION: ClassVar[ControlAction] = ControlAction.CANCEL
