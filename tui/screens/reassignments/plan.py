"""Reassign: scope and goal → alternatives → now and planned side by side → confirm → live."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from control.kafka.errors import KafkaPortError
from control.operations.catalogue.moves.reassign import REASSIGN, RUN_FIELDS, Reassign
from control.operations.errors import OperationError, PlanGoneError
from control.operations.previews import Previewed
from control.operations.reassignment.planning import Preview
from control.views.paths import ViewPath
from control.views.plan_choices import PlanChoice, PlanChoices, edited
from control.views.plan_map import map_path
from control.views.plans import (
    CHANGES_MAX,
    PLAN_BROKERS,
    PLAN_COLUMNS,
    change_rows,
    nothing_to_move,
    plan_files,
    preview_facts,
)
from control.views.preflight_checks import TONES
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import SHAPES
from planner.goals import GoalError
from tui.messages import PathChosen
from tui.screens.base import ViewScreen
from tui.screens.dialogs.confirm import Confirming
from tui.screens.reassignments.by_hand import HandScreen
from tui.terminal_session import TerminalSession
from tui.tones import STYLES, facts_text
from tui.widgets.form import FormPanel
from tui.widgets.text_table import table_text
from tui.widgets.trade_off import TradeOff

STEPS: Final = ("scope and goal", "choose", "review", "confirm", "live")


class Steps(Static):
    """Where on the way one is."""

    def show(self, present: int) -> None:
        """By number."""
        line = Text(" REASSIGN  ", style="bold")
        for number, name in enumerate(STEPS):
            style = "reverse" if number == present else "" if number < present else "dim"
            line.append(f" {number + 1} {name} ", style=style)
        self.update(line)


class PlannedScreen(ViewScreen):
    """A view with keys about a plan: they are there once there is one."""

    NEED_PLAN: ClassVar[frozenset[str]]
    """Actions."""

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._choices: PlanChoices | None = None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Away until then."""
        if self._choices is None and action in self.NEED_PLAN:
            return False
        return super().check_action(action, parameters)

    def action_export(self) -> None:
        """Saves the chosen alternative and its rollback, as Kafka's tool takes them."""
        if self._choices is None:
            return
        try:
            files = plan_files(self._choices.chosen.proposal(self.session.operations.plans))
            for name, text in files.items():
                Path(name).write_text(text)
        except (PlanGoneError, OSError) as error:
            self.notify(f"nothing was saved: {error}", severity="error", markup=False)
            return
        self.notify(f"wrote {' and '.join(files)} to {Path.cwd()}", markup=False)


class Alternatives(OptionList):
    """A few lines: its pages are those of the whole plan, whose review has the checks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pagedown", "turn_page(1)", "checks", show=True),
        Binding("pageup", "turn_page(-1)", "", show=False),
    ]

    def action_turn_page(self, direction: int) -> None:
        """Without a way there by key nobody would read them on a small terminal."""
        plan = self.screen.query_one("#plan", VerticalScroll)
        if direction > 0:
            plan.scroll_page_down(animate=False)
        else:
            plan.scroll_page_up(animate=False)


class PlanScreen(PlannedScreen):
    """Steps on one screen; nothing changes before the confirmation."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "confirm", "confirm", show=True),
        Binding("e", "edit", "edit scope", show=True),
        Binding("h", "by_hand", "by hand", show=True),
        Binding("m", "map", "on the map", show=True),
        Binding("J", "export", "save as JSON", show=True),
    ]
    NEED_PLAN = frozenset({"confirm", "edit", "by_hand", "map", "export"})

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._values: Mapping[str, str] = {}
        self._previewed: Previewed | None = None
        self._confirming = Confirming()
        self._is_awaited = False
        """The operator went on to the confirmation before the preview was there."""
        self._made: tuple[PlanChoices, Mapping[str, str]] | None = None
        """The last choices and what they were planned for, while the form is open: they stay where
        only how to run them changes."""

    def compose_body(self) -> ComposeResult:
        """The steps, the form, the alternatives, the review."""
        yield Steps(id="steps")
        with VerticalScroll(id="plan", can_focus=False):
            yield FormPanel(REASSIGN, {**self.path.query})
            yield Static(id="problem")
            yield Alternatives(id="alternatives")
            yield TradeOff(id="trade-off", markup=False)
            yield Static(id="review")

    def on_mount(self) -> None:
        """Only the form at first."""
        self.query_one("#alternatives").display = False
        self.query_one(Steps).show(0)

    def show(self, snapshot: OperatorSnapshot) -> None:
        """A plan is made from the cluster itself, not from the aggregates."""

    def on_form_panel_submitted(self, event: FormPanel.Submitted) -> None:
        """Plan, from the cluster as it is now; or keep what was made where only how to run it was
        changed: preview it anew."""
        self._values = event.values
        made, planned_for = self._made or (None, {})
        if made is not None and _is_same_plan(planned_for, event.values):
            self._say("")
            self._offer(made)
            return
        self._say("planning …")
        self.run_worker(self._make_plan, exclusive=True, group="plan")

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Another alternative: preview it."""
        if self._choices is not None:
            self._choices = replace(self._choices, at=event.option_index)
            self._previewed, self._is_awaited = None, False
            preview = partial(self._make_preview, self._choices.chosen)
            self.run_worker(preview, exclusive=True, group="preview")

    def on_option_list_option_selected(self) -> None:
        """Enter on an alternative: on to the confirmation."""
        self.action_confirm()

    def action_confirm(self) -> None:
        """Ask once more, then submit."""
        previewed = self._previewed
        if previewed is None:
            self._is_awaited = True
            self._say("▲ previewing it …", "yellow")
        elif previewed.effect.refusal is not None:
            self._say(f"✖ {previewed.effect.refusal.reason}", "bold red")
        else:
            self.query_one(Steps).show(3)

            def answered(is_confirmed: bool | None) -> None:
                if is_confirmed:
                    self.run_worker(partial(self._submit, previewed), exclusive=True, group="plan")
                else:
                    self.query_one(Steps).show(2)

            question = "\n".join(previewed.effect.lines)
            self.app.push_screen(self._confirming.ask(previewed, question), answered)

    def action_edit(self) -> None:
        """Back to the form; a plan of another scope is made anew."""
        if self._choices is not None:
            self._made = (self._choices, self._values)
        self._choices = self._previewed = None
        self.workers.cancel_group(self, "preview")
        self.refresh_bindings()
        self.query_one("#alternatives").display = False
        self.query_one(TradeOff).show(())
        self.put("#review", "")
        panel = self.query_one(FormPanel)
        panel.display = True
        panel.query_one("#field-task").focus()
        self.query_one(Steps).show(0)

    def action_by_hand(self) -> None:
        """Place partitions of the chosen alternative otherwise; it is judged at once."""
        if self._choices is None:
            return
        choices, operator, values = self._choices, self.session.operations, self._values
        try:
            entries = choices.entries_to_edit(operator.plans)
        except PlanGoneError as error:
            self._say(_refusal(error), "bold red")
            return

        async def judge(entries: str, leaders: str) -> PlanChoices:
            return await edited(operator, choices, entries, {**values, "leader_order": leaders})

        def take(made: PlanChoices | None) -> None:
            if made is not None:
                self._offer(made)

        self.app.push_screen(HandScreen(entries, judge), take)

    def action_map(self) -> None:
        """The chosen alternative on the map; Esc leads back here."""
        if self._choices is not None:
            path = map_path(self._choices.chosen.name, values=self._values)
            self.post_message(PathChosen(str(path)))

    def _offer(self, choices: PlanChoices) -> None:
        """In place of the form the alternatives, one of them chosen, and what each costs and
        reaches."""
        self._choices, self._made = choices, None
        self.query_one(Steps).show(1)
        self.query_one(FormPanel).display = False
        self.refresh_bindings()
        chooser = self.query_one(Alternatives)
        chooser.clear_options()
        chooser.add_options(
            Option(Text(f"{number} {item.words}"))
            for number, item in enumerate(choices.items, start=1)
        )
        chooser.display = True
        chooser.highlighted = choices.at
        chooser.focus()
        self.query_one(TradeOff).show([item.offer for item in choices.items])

    async def _make_plan(self) -> None:
        try:
            made = await self.session.operations.plan(self._values)
        except (GoalError, OperationError, KafkaPortError) as error:
            self._say(_refusal(error), "bold red")
            return
        limits = "\n".join(f"◆ {limit}" for limit in made.limits)
        choices = PlanChoices.of_plan(made)
        if not choices.items:
            title, broken = nothing_to_move(made.alternatives[0].violations, made.limits)
            mark = "▲" if broken else "◆" if made.limits else "✔"
            lines = [f"{mark} {title}", *(f"▲ {line}" for line in broken)]
            self._say("\n".join([*lines, limits]), "bold red" if broken else "")
            return
        before, _ = self._made or (choices, None)
        has_hand = any(item.base for item in before.items)
        lost = "\n◆ planned anew: placements by hand of the plan before are dropped" * has_hand
        self._say(f"{limits}{lost}".strip())
        self._offer(choices)

    async def _make_preview(self, chosen: PlanChoice) -> None:
        operations = self.session.operations
        try:
            asked = Reassign.of_plan(chosen.proposal(operations.plans), self._values)
            previewed = await operations.preview(asked)
        except (OperationError, KafkaPortError) as error:
            self._say(_refusal(error), "bold red")
            return
        finally:
            is_awaited, self._is_awaited = self._is_awaited, False
        if self._choices is None:  # given up meanwhile
            return
        self._previewed = previewed
        self.query_one(Steps).show(2)
        if previewed.effect.review is not None:
            width = self.app.size.width - 2
            self.put("#review", _review(chosen, previewed.effect.review, width))
        if is_awaited:
            self._say("")
            if self.is_active:
                self.action_confirm()

    async def _submit(self, previewed: Previewed) -> None:
        try:
            done = await self.session.operations.perform(previewed, typed=previewed.word)
        except (OperationError, KafkaPortError) as error:
            self._say(_refusal(error), "bold red")
            return
        self.query_one(Steps).show(4)
        self.post_message(PathChosen(str(ViewPath(view=done.view, params=done.params))))

    def _say(self, line: str, style: str = "") -> None:
        self.put("#problem", Text(line, style=style))
        self.call_after_refresh(self.query_one("#problem").scroll_visible, animate=False)


def _refusal(error: Exception) -> str:
    """An error: what, why, and what to do."""
    step = error.next_step if isinstance(error, OperationError | KafkaPortError) else ""
    return f"✖ {error}\n→ {step}" if step else f"✖ {error}"


def _is_same_plan(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether only how to run it differs."""
    return all(now[name] == before.get(name) for name in now if name not in RUN_FIELDS)


def _review(chosen: PlanChoice, preview: Preview, width: int) -> Text:
    text = Text()
    for violation in chosen.violations:
        text.append(f"▲ {violation}\n", style="yellow")
    text.append_text(facts_text(Text(), preview_facts(preview), width)).append("\n\n")
    brokers = PLAN_BROKERS.rows(preview.brokers)
    text.append_text(table_text(PLAN_BROKERS.columns, brokers)).append("\n")
    for check in preview.checks:
        tone = TONES[check.verdict]
        text.append(f"\n{SHAPES[tone]} {check.name}: ", style=STYLES[tone])
        text.append(check.reason, style="")
    text.append("\n\n").append_text(
        table_text(PLAN_COLUMNS, change_rows(preview.proposal, chosen.why))
    )
    left_out = len(preview.proposal.changes) - CHANGES_MAX
    if left_out > 0:
        text.append(f"\n… and {left_out} more", style="dim")
    return text
