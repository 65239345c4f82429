"""Give a running reassignment another throttle."""

from dataclasses import dataclass
from typing import ClassVar, Self

from control.model.units import byte_rate_text
from control.move.commands import ControlAction
from control.move.state import OperationState
from control.move.throttle import THROTTLE_NONE
from control.operations import checks
from control.operations.catalogue.forms import FormField, OperationForm
from control.operations.catalogue.moves.control import MoveControl, move_form
from control.operations.catalogue.operation import Change, Done, Effect, OperationContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeThrottle(MoveControl):
    """The new rate holds from now on."""

    FORM: ClassVar[OperationForm] = move_form(
        "throttle",
        FormField(
            name="throttle",
            label="Throttle",
            help="auto, none, or 50MiB",
            is_required=True,
            check=checks.throttle,
        ),
        key="t",
        title="Throttle",
        help="Brokers copy at another rate from now on.",
    )
    ACTION: ClassVar[ControlAction] = ControlAction.THROTTLE

    throttle: str
    """auto, none, or bytes per second such as ``50MiB``."""

    @property
    def what(self) -> str:
        """For the journal and in questions."""
        return f"throttle {self.move} to {self.throttle}"

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """:raises InvalidInputError: no such rate, or its waves are too large for any."""
        effect = await MoveControl.preview(self, context)
        await context.moves.require_rate(self.move, self.throttle)
        return effect

    async def perform(self, context: OperationContext) -> Done:
        """Ask the executor."""
        return await self._ask(context, self.throttle)

    def _change(self, state: OperationState) -> Change:
        rate = state.throttle_bytes_per_s
        now = THROTTLE_NONE if rate is None else byte_rate_text(rate)
        return Change("throttle", now, self.throttle)
