"""Placing partitions of a plan by hand: entries are typed, judged at once, taken over."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Label, Select, Static, TextArea

from control.kafka.errors import KafkaPortError
from control.operations.errors import InvalidInputError, OperationError
from control.views.plan_choices import PlanChoice, PlanChoices
from planner.by_hand import LeaderOrder
from tui.work import WorksWhileShown

JUDGE_AFTER_S: Final = 0.3
Typed = tuple[str, str]
"""Entries, and the order of leaders."""
Judge = Callable[[str, str], Awaitable[PlanChoices]]


class HandScreen(WorksWhileShown, ModalScreen[PlanChoices | None]):
    """ctrl+s takes what is judged; Esc leaves the plan as it was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "leave it"),
        Binding("ctrl+s", "take", "take it"),
    ]

    def __init__(self, entries: str, judge: Judge) -> None:
        super().__init__()
        self._entries = entries
        self._judge_plan = judge
        self._judged: tuple[Typed, PlanChoices] | None = None
        self._wanted: Typed | None = None
        """What stood there when ctrl+s was pressed: keys may be faster than the verdict."""

    def compose(self) -> ComposeResult:
        """Entries, the order of leaders, the verdict."""
        with Vertical(id="by-hand"):
            yield Static("orders-3: 101,102  (the leader first; now: as it is)", markup=False)
            yield TextArea(self._entries, id="entries")
            with Horizontal(classes="field"):
                yield Label("Leaders")
                orders = [(order.value, order.value) for order in LeaderOrder]
                yield Select(
                    orders,
                    value=LeaderOrder.GIVEN.value,
                    allow_blank=False,
                    id="leader-order",
                    compact=True,
                )
            yield Static(id="hand-verdict", markup=False)
            yield Static("ctrl+s takes it · Esc leaves the plan as it was", classes="hint")

    def on_mount(self) -> None:
        """Type at once."""
        self.query_one("#entries").focus()

    def on_text_area_changed(self) -> None:
        """Judged when the keys rest."""
        self._judge()

    def on_select_changed(self) -> None:
        """Another order of leaders."""
        self._judge()

    def action_take(self) -> None:
        """The plan, as soon as what stands in the fields is found right."""
        self._wanted = self._typed()
        if self._judged is not None and self._judged[0] == self._wanted:
            self.dismiss(self._judged[1])

    def _typed(self) -> Typed:
        order = self.query_one("#leader-order", Select).value
        return self.query_one("#entries", TextArea).text, str(order)

    def _judge(self) -> None:
        self._judged = None
        if self._wanted != self._typed():
            self._wanted = None
        self._say("judging it …")
        self.run_worker(self._ask, exclusive=True, group="judge")

    async def _ask(self) -> None:
        await asyncio.sleep(JUDGE_AFTER_S)  # another key begins anew
        typed = self._typed()
        try:
            made = await self._judge_plan(*typed)
        except InvalidInputError as error:
            self._say("\n".join(f"✖ {words}" for words in error.fields.values()))
        except (OperationError, KafkaPortError) as error:
            self._say(f"✖ {error}")
        else:
            self._judged = typed, made
            self._say(_verdict(made.chosen))
            if self._wanted == typed:
                self.dismiss(made)

    def _say(self, words: str) -> None:
        self.query_one("#hand-verdict", Static).update(words)


def _verdict(item: PlanChoice) -> str:
    """Data to copy, balance reached, and broken rules."""
    broken = (f"▲ {violation}" for violation in item.violations[:3])
    return "\n".join((f"✔ {item.words}", *broken))
