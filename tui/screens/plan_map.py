"""A plan on the map, in the terminal: topic by broker, now or planned, what grows and shrinks."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Static

from control.planner.ghost import KeptPlan, plan_name
from control.views.format import bytes_text, plural_text
from control.views.ghost import GROWS, MEASURES, GhostCell, ghost_map, map_path, to_text
from control.views.snapshot import OperatorSnapshot
from tui.screens.base import ViewScreen

_NAME_WIDTH: Final = 20
_VALUE_WIDTH: Final = 21


class PlanMapScreen(ViewScreen):
    """Esc leads back to the plan; ``n`` turns between now and planned."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "turn", "now/planned", show=True),
        Binding("m", "measure", "measure", show=True),
    ]

    def __init__(self, kept: KeptPlan) -> None:
        super().__init__(map_path(plan_name(kept.alternative.proposal)))
        self._kept = kept
        self._measure = next(iter(MEASURES))
        self._is_planned = True

    def compose_body(self) -> ComposeResult:
        """What is shown, then the grid."""
        yield Static(id="plan-map-title", classes="title")
        yield DataTable(id="plan-map", cursor_type="cell", fixed_columns=1)

    def on_mount(self) -> None:
        """The grid has the keys."""
        self._draw()
        self.query_one(DataTable).focus()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """A plan is of the moment at which it was made."""

    def action_turn(self) -> None:
        """Now, or planned."""
        self._is_planned = not self._is_planned
        self._draw()

    def action_measure(self) -> None:
        """Bytes, replicas, leaders."""
        names = list(MEASURES)
        self._measure = names[(names.index(self._measure) + 1) % len(names)]
        self._draw()

    def _draw(self) -> None:
        found = ghost_map(self._kept, self._measure)
        table: DataTable[Text] = self.query_one("#plan-map", DataTable)
        at = table.cursor_coordinate
        table.clear(columns=True)
        table.add_column("topic", width=_NAME_WIDTH)
        for broker in found.now.brokers:
            table.add_column(Text(str(broker), justify="right"), width=_VALUE_WIDTH)
        for column, topic in enumerate(found.now.topics):
            cells = [self._text(row[column]) for row in found.cells]
            table.add_row(Text(topic, no_wrap=True, overflow="ellipsis"), *cells)
        table.move_cursor(row=at.row, column=max(at.column, 1), animate=False)
        self.put("#plan-map-title", self._title(found.topics_left_out))

    def _title(self, left_out: int) -> Text:
        proposal = self._kept.alternative.proposal
        title = Text.assemble(("PLAN ON THE MAP", "bold"), "  ")
        for word, is_shown in (("now", not self._is_planned), ("planned", self._is_planned)):
            title.append(f" {word} ", style="reverse" if is_shown else "dim")
        title.append(f"  {MEASURES[self._measure]}", style="bold")
        title.append(f"  {self._kept.alternative.name}, {bytes_text(proposal.moved_bytes)} travel")
        if left_out:
            title.append(f"; {plural_text(left_out, 'topic')} left out", style="dim")
        return title

    def _text(self, cell: GhostCell) -> Text:
        value = cell.after if self._is_planned else cell.before
        words = to_text(self._measure)(value) if value else "·"
        if not self._is_planned or not cell.sign:
            return Text(words, style="" if value else "dim", justify="right")
        style = "yellow" if cell.sign == GROWS else "green"
        return Text.assemble(
            words, (f" {cell.sign}{cell.difference}", style), justify="right", no_wrap=True
        )
