"""Reassignments, running and past; one of them live, with cancel and undo."""

import asyncio
import contextlib
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import ProgressBar, Static

from control.kafka.errors import KafkaPortError
from control.model.command_line import command
from control.move.events import MoveProgress, Outcome
from control.move.state import HELD, OperationState
from control.operations.bus.client import WATCH_OUTAGE_S, WatchLostError
from control.operations.bus.topics import Outage
from control.operations.catalogue.forms import Confirmation
from control.operations.catalogue.moves.cancel import Cancel
from control.operations.catalogue.moves.cancel_after_wave import CancelAfterWave
from control.operations.catalogue.moves.change_throttle import ChangeThrottle
from control.operations.catalogue.moves.control import MoveControl
from control.operations.catalogue.moves.pause import Pause
from control.operations.catalogue.moves.resume import Resume
from control.operations.catalogue.moves.roll_back import RollBack
from control.operations.errors import OperationError
from control.operations.operation_session import OperationSession
from control.operations.previews import Previewed
from control.views.format import byte_rate_text
from control.views.next_links import explained
from control.views.paths import ViewPath
from control.views.preflight_checks import check_words
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.moves import (
    MOVES,
    MOVING,
    change_columns_of,
    done_percent,
    earlier_notes,
    ended_rows,
    fate_words,
    heard_of_words,
    move_facts,
    move_row,
    moving_rows,
    newest_words,
    spread_words,
    stalled_lines,
    status_word,
)
from control.views.tables.query import Page
from tui.messages import PathChosen
from tui.screens.base import ViewScreen, heading
from tui.screens.dialogs.confirm import Confirming, ConfirmScreen, RateScreen
from tui.terminal_session import TerminalSession
from tui.tones import facts_text
from tui.widgets.row_table import RowTable
from tui.widgets.text_table import table_text

LIST_EVERY_S: Final = 2.0
CHANGES_MAX: Final = 200
LOOKING_SHOWN_S: Final = 2.0
REFUSED_SHOWN_S: Final = 20.0
"""Reasons take longer to read than a word does."""
_OUTCOME: Final = {
    Outcome.DONE: ("✔", "green"),
    Outcome.CANCELLED: ("◆", "cyan"),
    Outcome.FAILED: ("✖", "bold red"),
    Outcome.REFUSED: ("✖", "bold red"),
    None: ("…", "yellow"),
}


def state_text(state: OperationState) -> Text:
    """Phase or outcome with its shape."""
    sign, style = _OUTCOME[state.outcome]
    return Text(f"{sign} {status_word(state)}", style=style)


class MovesScreen(ViewScreen):
    """The newest first; Enter opens one."""

    def compose_body(self) -> ComposeResult:
        """The table."""
        yield Static("[b]MOVES[/b]  reading …", classes="title", id="moves-title")
        yield RowTable(id="table")

    def on_mount(self) -> None:
        """Read the bus now and then again."""
        self.query_one(RowTable).focus()
        self.run_worker(self._keep_reading, group="moves")

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Moves come from the bus of operations, not from the aggregates."""

    async def _keep_reading(self) -> None:
        """One after the other: a bus that is away takes its time to be given up."""
        while True:
            await self._read()
            await asyncio.sleep(LIST_EVERY_S)

    async def _read(self) -> None:
        moves = self.session.operations.moves
        try:
            states = await moves.list()
        except KafkaPortError as error:
            self.put("#moves-title", heading("MOVES", f" ✖ {error.title}: {error.next_step}"))
            return
        hint = "" if states else "  none yet: R plans one"
        unread = f"  ▲ {moves.unreadable}" if moves.unreadable else ""
        self.put("#moves-title", heading("MOVES", f"{len(states)}{hint}{unread}"))
        now_ms = self.session.now_ms
        rows = tuple(move_row(state, now_ms=now_ms) for state in states)
        page = Page.whole(rows, MOVES.columns)
        if self.is_attached:
            self.query_one(RowTable).show(page)


class MoveScreen(ViewScreen):
    """One reassignment: bytes, rate, time left, stalled partitions; it goes on when you leave."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "cancel", "cancel", show=True),
        Binding("X", "cancel_after_wave", "after the wave", show=True),
        Binding("u", "undo", "roll back", show=True),
        Binding("t", "throttle", "throttle", show=True),
        Binding("space", "hold", "pause / resume", show=True),
        Binding("o", "report", "report", show=True),
    ]
    NEEDS: ClassVar[Mapping[str, str]] = {
        "cancel": "cancel", "cancel_after_wave": "cancel_after_wave",
        "undo": "rollback", "throttle": "throttle",
    }  # fmt: skip
    ASKS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "cancel": ("cancel",), "cancel_after_wave": ("cancel_after_wave",),
        "undo": ("rollback",), "throttle": ("throttle",),
        "hold": ("pause", "resume"),
    }  # fmt: skip
    """Per key, what it may ask of the move."""

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._move = path.params["move"]
        self._state: OperationState | None = None
        self._confirming = Confirming()

    def compose_body(self) -> ComposeResult:
        """Head, bar, details."""
        yield Static(id="move-head", classes="title")
        yield ProgressBar(id="move-bar", total=100, show_eta=False)
        with VerticalScroll():
            yield Static(id="move-body")

    def on_mount(self) -> None:
        """Follow it from its first event."""
        self.put("#move-head", f"{self._move}  reading its events …")
        self.run_worker(self._follow, exclusive=True, group="move")

    def show(self, snapshot: OperatorSnapshot) -> None:
        """A move comes from the bus of operations, not from the aggregates."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Greys actions that make no sense now, and those without a right."""
        state, asks = self._state, self.ASKS.get(action)
        if action == "report":
            return None if state is None or not state.is_finished else True
        if state is not None and asks and not any(state.may(ask) for ask in asks):
            return None
        return super().check_action(action, parameters)

    async def _follow(self) -> None:
        moves = self.session.operations.moves

        def tell(error: KafkaPortError | None) -> None:
            if error is None and self._state is not None:
                self.take(self._state)
                return
            words = f" {self._move}  ▲ as it was; no news, the bus does not answer: {error}"
            self.put("#move-head", Text(words, style="yellow"))

        try:
            known = await moves.get(self._move)  # refuses a name that nothing has
            self.take(known)
            is_over = known.is_finished
            while not is_over:
                with contextlib.suppress(WatchLostError):
                    outage = Outage(WATCH_OUTAGE_S, tell)
                    async for state in moves.watch(self._move, outage=outage):
                        if state.updated_ms >= known.updated_ms:  # it begins with its first event
                            self.take(state)
                    is_over = True
        except (KafkaPortError, OperationError) as error:
            self.put("#move-head", self._move)
            self.put("#move-body", Text(f"✖ {error}", style="bold red"))

    def take(self, state: OperationState) -> None:
        """Show how far it is; keys are those that make sense now."""
        self._state = state
        self.refresh_bindings()
        head = Text.assemble((f" {state.operation_id}  ", "bold"), state_text(state))
        head.append(f"  {newest_words(state)}")
        if state.yield_words:
            head.append(f"\n ▲ {state.yield_words}", style="yellow")
        self.put("#move-head", head)
        for bar in self.query(ProgressBar):
            bar.update(progress=_percent(state))
        width = self.app.size.width - 2
        self.put("#move-body", _body(state, now_ms=self.session.now_ms, width=width))

    def action_cancel(self) -> None:
        """Cancels what is moving; what is done stays."""
        self._ask(Cancel(move=self._move))

    def action_cancel_after_wave(self) -> None:
        """Let arrive what is moving; begin nothing else."""
        self._ask(CancelAfterWave(move=self._move))

    def action_undo(self) -> None:
        """Say what the rollback would do, and ask."""
        self.notify("previewing the rollback …", timeout=LOOKING_SHOWN_S)
        asking = partial(self._ask_back, self.session.operations)
        self.run_worker(asking, exclusive=True, group="ask")

    def action_report(self) -> None:
        """Open the report of a move that has ended."""
        self.post_message(PathChosen(f"moves/{self._move}/report"))

    def action_throttle(self) -> None:
        """Another rate while it runs."""

        def answered(rate: str | None) -> None:
            if rate:
                self._ask(ChangeThrottle(move=self._move, throttle=rate))

        now = byte_rate_text(self._state.throttle_bytes_per_s if self._state else None)
        self.app.push_screen(RateScreen(f"Throttle, now {now}: auto, none, or 50MiB"), answered)

    def _needed(self, action: str, parameters: tuple[object, ...]) -> str:
        if action == "hold":
            return "resume" if self._is_held else "pause"
        return super()._needed(action, parameters)

    @property
    def _is_held(self) -> bool:
        return self._state is not None and self._state.phase in HELD

    def action_hold(self) -> None:
        """Start no new wave, or go on."""
        self._ask(Resume(move=self._move) if self._is_held else Pause(move=self._move))

    def _ask(self, asked: MoveControl) -> None:
        """Its question needs no look at the cluster: a key that follows at once answers it."""
        session = self.session.operations
        word = asked.word(session.watched)
        is_asked = word or asked.FORM.confirmation is not Confirmation.NONE
        question = f"{asked.question} {asked.FORM.help}"
        self._confirm(
            ConfirmScreen(question, word=word or None) if is_asked else None, session, asked
        )

    async def _ask_back(self, session: OperationSession) -> None:
        asked = RollBack(move=self._move)
        try:
            previewed = await session.preview(asked)
        except (KafkaPortError, OperationError) as error:
            _refuse(self.app, explained(error))
            return
        effect = previewed.effect
        head, *notes = effect.lines
        question = f"{asked.question} {head}"
        if effect.refusal is not None:
            _refuse(self.app, effect.refusal.reason)
        elif not self.is_active:
            self.notify(f"{question} Press u again on its screen to answer.", markup=False)
        else:
            words = "\n".join((question, *notes, *map(check_words, effect.doubts)))
            self._confirm(self._confirming.ask(previewed, words), session, previewed)

    def _confirm(
        self,
        question: ConfirmScreen | None,
        session: OperationSession,
        asked: MoveControl | Previewed,
    ) -> None:
        """Ask, where there is a question, and begin."""

        def answered(is_confirmed: bool | None) -> None:
            if is_confirmed:
                # In a worker of the application: it must not end midway with this screen.
                self.app.run_worker(_do(self, session, asked), group="act")

        if question:
            self.app.push_screen(question, answered)
        else:
            answered(True)


async def _do(
    screen: ViewScreen, session: OperationSession, asked: MoveControl | Previewed
) -> None:
    """The cluster is that of the question, whichever is shown by now."""
    try:
        previewed = asked if isinstance(asked, Previewed) else await session.preview(asked)
        done = await session.perform(previewed, typed=previewed.word)
    except (KafkaPortError, OperationError) as error:
        _refuse(screen.app, explained(error))
        return
    if done.view and screen.is_active:
        screen.post_message(PathChosen(str(ViewPath(view=done.view, params=done.params))))
        return
    name = session.watched.name
    where = f" on {name}" if name else ""
    lists = ": g r lists it" if done.view else ""
    screen.app.notify(f"{done.words}{where}{lists}", markup=False)


def _refuse(app: App[None], words: str) -> None:
    app.notify(words, severity="error", timeout=REFUSED_SHOWN_S, markup=False)


def _percent(state: OperationState) -> float:
    if state.outcome is Outcome.DONE:
        return 100.0
    return done_percent(state.progress) or 0.0


def _body(state: OperationState, *, now_ms: int, width: int) -> Text:
    text = facts_text(Text(), move_facts(state, now_ms=now_ms), width)
    if state.outcome is None and state.updated_ms:
        text.append(f"   {heard_of_words(state, now_ms=now_ms)}", style="dim")
    by = f"by {state.who}" if state.who else ""
    text.append(f"\n {by}  {state.reason}", style="dim")
    for note in earlier_notes(state):
        text.append(f"\n ◆ {note}", style="dim")
    if state.progress is not None and state.outcome is None:
        text.append_text(_on_their_way(state, state.progress, now_ms=now_ms))
    return text.append("\n\n").append_text(_changes(state))


def _changes(state: OperationState) -> Text:
    """Partition by partition, those first that did not move."""
    text = Text(f" {fate_words(state)}\n" if state.fates else "", style="bold")
    rows = ended_rows(state)[:CHANGES_MAX]
    text = Text().append_text(text).append_text(table_text(change_columns_of(state), rows))
    left_out = len(state.changes) - CHANGES_MAX
    if left_out > 0:
        all_of = command(f"moves show {state.operation_id}")
        text.append(f"\n… and {left_out:,} more: {all_of}", style="dim")
    return text


def _on_their_way(state: OperationState, progress: MoveProgress, *, now_ms: int) -> Text:
    """Partitions that stand still, then those that move."""
    text = Text()
    told = (spread_words(progress), *stalled_lines(progress))
    for line in filter(None, told):
        text.append(f"\n {line}")
    rows = moving_rows(state, now_ms=now_ms)
    if not rows:
        return text
    text.append("\n\n").append_text(table_text(MOVING.columns, rows))
    more = len(progress.in_flight) + progress.in_flight_more - len(rows)
    if more > 0:
        text.append(f"\n… and {more} more", style="dim")
    return text
