"""A plan on the map, in the terminal: topic by broker, now or planned, what grows and shrinks."""

from dataclasses import replace
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Static

from control.views.format import bytes_text, plural_text
from control.views.paths import ViewPath
from control.views.plan_map import GROWS, MEASURES, PlanCell, form_path, plan_map, to_text
from control.views.snapshots.snapshot import OperatorSnapshot
from planner.optimizer import Alternative
from planner.planned_map import KeptPlan
from tui.messages import PathChosen
from tui.screens.base import ViewScreen
from tui.terminal_session import TerminalSession

_NAME_WIDTH: Final = 20
_VALUE_WIDTH: Final = 21
NOT_KEPT: Final = (
    "PLAN ON THE MAP  this plan is not kept here: page and terminal each keep the last few of "
    "their own. e plans again, with its form"
)


class PlanMapScreen(ViewScreen):
    """Esc leads back to the plan; ``n`` turns between now and planned."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "turn", "now/planned", show=True),
        Binding("m", "measure", "measure", show=True),
        Binding("e", "form", "plan again", show=True),
    ]

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        wanted = path.query.get("measure", "")
        self._measure = wanted if wanted in MEASURES else next(iter(MEASURES))
        self._is_planned = True
        self._kept: KeptPlan | None = None

    def compose_body(self) -> ComposeResult:
        """Title, then the grid."""
        yield Static(id="plan-map-title", classes="title")
        yield DataTable(id="plan-map", cursor_type="cell", fixed_columns=1)

    def on_mount(self) -> None:
        """The grid has the keys; the plan is one that was made here."""
        self._kept = self.session.operations.plans.find(self.path.query["plan"])
        self.query_one(DataTable).display = self._kept is not None
        if self._kept is None:
            self.put("#plan-map-title", Text(NOT_KEPT, style="yellow"))
        else:
            self._draw(self._kept)
            self.query_one(DataTable).focus()
        self.refresh_bindings()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """A plan is of the moment at which it was made."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Its form is the way on where the plan is gone."""
        if action == "form":
            return self._kept is None
        return super().check_action(action, parameters)

    def action_form(self) -> None:
        """Filled in as the link says."""
        self.post_message(PathChosen(str(form_path(self.path))))

    def action_turn(self) -> None:
        """Now, or planned."""
        self._is_planned = not self._is_planned
        self._draw_again()

    def action_measure(self) -> None:
        """Bytes, replicas, leaders."""
        names = list(MEASURES)
        self._measure = names[(names.index(self._measure) + 1) % len(names)]
        self.path = replace(self.path, query={**self.path.query, "measure": self._measure})
        self._draw_again()

    def _draw_again(self) -> None:
        if self._kept is not None:
            self._draw(self._kept)

    def _draw(self, kept: KeptPlan) -> None:
        found = plan_map(kept, self._measure)
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
        self.put("#plan-map-title", self._title(kept.alternative, found.topics_left_out))

    def _title(self, chosen: Alternative, left_out: int) -> Text:
        proposal = chosen.proposal
        title = Text.assemble(("PLAN ON THE MAP", "bold"), "  ")
        for word, is_shown in (("now", not self._is_planned), ("planned", self._is_planned)):
            title.append(f" {word} ", style="reverse" if is_shown else "dim")
        title.append(f"  {MEASURES[self._measure]}", style="bold")
        title.append(f"  {chosen.name}, {bytes_text(proposal.moved_bytes)} to copy")
        if not proposal.changes:
            title.append("; it changes nothing: the cluster is as planned", style="dim")
        if left_out:
            title.append(f"; {plural_text(left_out, 'topic')} left out", style="dim")
        return title

    def _text(self, cell: PlanCell) -> Text:
        value = cell.after if self._is_planned else cell.before
        words = to_text(self._measure)(value) if value else "·"
        if not self._is_planned or not cell.sign:
            return Text(words, style="" if value else "dim", justify="right")
        style = "yellow" if cell.sign == GROWS else "green"
        return Text.assemble(
            words, (f" {cell.sign}{cell.difference}", style), justify="right", no_wrap=True
        )
