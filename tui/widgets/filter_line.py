"""A line of text above a table that says what of it is shown."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input


class FilterLine(Input):
    """Escape clears it, Escape in an empty one is Enter; neither leaves the view, so that whatever
    is typed next is no command somewhere else."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "clear_or_submit", "clear")]

    async def action_clear_or_submit(self) -> None:
        """Clears typed text first."""
        if self.value:
            self.clear()
        else:
            await self.action_submit()
