"""Produce: the partition that a key will hit before sending, partition and offset after."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Label, Static

from control.kafka.errors import KafkaPortError
from control.messages.lines import LinesError, lines_in, records_of
from control.messages.produce_progress import ProduceProgress
from control.messages.produce_session import KeyAndValue
from control.operations.catalogue.topics.produce import PRODUCE, Produce
from control.operations.errors import OperationError
from control.operations.sends import Send
from control.views.format import latency_text
from control.views.messages.key_preview import Leaders, known_leaders, landing
from control.views.messages.progress import last_words, progress_cells, progress_words
from control.views.messages.sent import Sent
from control.views.next_links import explained
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.screens.base import ViewScreen
from tui.screens.dialogs.confirm import ConfirmScreen
from tui.terminal_session import TerminalSession
from tui.tones import cell_text
from tui.widgets.form import FormPanel
from tui.widgets.produced import LimitsLine, SentMessages, spread_text
from tui.widgets.sparkline import bar

TOPICS_EVERY_S: Final = 5.0
BAR_WIDTH: Final = 30
SPREAD_HINT: Final = "are so many; Enter shows where 10,000 keys land by each client's rule"
FILE_HINT: Final = "or the lines of a file here: KEY<tab>VALUE or VALUE"


class ProduceScreen(ViewScreen):
    """Enter sends; Esc stops what runs, and goes back when nothing does.

    A send belongs to the session: it goes on when the view is left, and the next one shows it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "stop / back", show=True),
    ]

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._leaves = False
        """The view is left once the journal has the records that were sent."""
        self._shown: Send | None = None
        """The send whose progress is shown."""
        self._leaders: dict[str, Leaders] = {}
        """Of each topic, as the cluster itself told."""
        self._typed = ""
        """The cluster's name, once it was typed here."""

    def compose_body(self) -> ComposeResult:
        """Where it would land above, the form, what happens below."""
        yield Static("PRODUCE", classes="title")
        yield Static(id="where")
        yield LimitsLine(id="limits")
        given = {"value": "message {n}", **self.path.query, "topic": self.topic_here}
        yield FormPanel(PRODUCE, given)
        with Horizontal(classes="field", id="file-line"):
            yield Label("File")
            yield Input(id="file", compact=True, placeholder=FILE_HINT)
        with Horizontal(classes="field", id="then-line"):
            yield Label("If partitions")
            then = self.path.query.get("then", "")
            yield Input(then, id="then", compact=True, placeholder=SPREAD_HINT)
        yield Static(id="outcome")
        yield SentMessages(id="followed")

    def on_mount(self) -> None:
        """Topics and leaders come from the cluster itself: a key's place must be true now. Until it
        has answered, or where it does not, there are those that are known."""
        known = {it for it in self.session.snapshot.cluster.topics if not it.startswith("__")}
        self.query_one(FormPanel).offer("topic", known)

        def ask() -> None:
            self.run_worker(self._read_topics, exclusive=True, group="topics")

        self.set_interval(TOPICS_EVERY_S, ask)
        ask()
        topic = self.query_one(FormPanel).values()["topic"]
        newest = self.session.operations.sends.of(topic)
        if newest is not None and not newest.is_running:
            self._say(last_words(newest), "")

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Follow what was sent to its segments, replicas and groups."""
        self.query_one(SentMessages).show(snapshot)

    async def _read_topics(self) -> None:
        try:
            topics = await self.session.operations.topics()
        except KafkaPortError:
            self._show_where()  # the line of the limits tells that nobody answers
            return
        self._leaders = {
            topic.name: {item.partition: item.leader for item in topic.partitions}
            for topic in topics
            if not topic.is_internal and not topic.name.startswith("__")
        }
        self.query_one(FormPanel).offer("topic", self._leaders)
        self._show_where()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in a field below the form."""
        event.stop()
        if event.input.id == "then":
            values = self.query_one(FormPanel).values()
            partitions = len(self._leaders_of(values["topic"]))
            try:
                records = _records_of_file(self._file)
                then = event.value.strip()
                self._say(spread_text(partitions, values["key"], then, records), "")
            except (OperationError, LinesError) as error:
                self._say(f"✖ {error}", "bold red")
        else:
            self.query_one(FormPanel).action_submit()

    def on_input_changed(self) -> None:
        """Another file."""
        self._show_where()

    def on_form_panel_edited(self) -> None:
        """Where would it land now?"""
        self._show_where()

    def on_form_panel_submitted(self, event: FormPanel.Submitted) -> None:
        """Send what the form says."""
        if self._is_sending:
            self._say("▲ still sending; Esc stops it", "yellow")
            return
        word, values = self.session.watched.word_to_type(), event.values
        if not word or self._typed == word:
            self._begin(values)
            return

        def answered(is_confirmed: bool | None) -> None:
            if is_confirmed:
                self._typed = word
                self._begin(values)
            else:
                self._say("nothing was sent", "")

        question = f"Send to {values['topic']} of a production cluster?"
        self.app.push_screen(ConfirmScreen(question, word=word), answered)

    def _begin(self, values: Mapping[str, str]) -> None:
        try:
            asked = Produce.of_form(values, _records_of_file(self._file))
        except (OperationError, LinesError) as error:
            self._say(f"✖ {error}", "bold red")
            return
        self._leaves = False
        self._say("sending …", "")
        self.run_worker(partial(self._send, asked), exclusive=True, group="produce")

    @property
    def _is_sending(self) -> bool:
        return self._shown is not None and self._shown.is_running

    @property
    def _file(self) -> str:
        return self.query_one("#file", Input).value.strip()

    async def action_stop(self) -> None:
        """Stop at once; with nothing left to send, go back."""
        if self._shown is not None and self._is_sending:
            progress = self._shown.progress
            self._leaves = progress is not None and progress.is_done
            self._shown.stop()
        else:
            await self.app.run_action("app.back")

    async def _send(self, asked: Produce) -> None:
        try:
            begun = await self.session.operations.sends.begin(asked, typed=self._typed)
        except (KafkaPortError, OperationError) as error:
            self._say(f"✖ {explained(error)}", "bold red")
        else:
            await self._follow(begun)

    async def _follow(self, send: Send) -> None:
        self._shown = send
        self.query_one(SentMessages).forget()
        async for progress in send.progresses():
            self.put("#outcome", _outcome(progress, send.asked.job.options.acks))
            if progress.is_done:
                sent = Sent.of(send.topic, progress)
                self.query_one(SentMessages).follow(sent, self.session.snapshot)
        if (error := send.error) is not None:
            done = send.progress
            before = f"{progress_words(done)}\n" if done is not None and done.sent else ""
            self._say(f"{before}✖ {explained(error)}", "bold red")
        if self._leaves:
            # Not from here: the view would wait for this worker, and this worker for the view.
            self.app.call_later(self.app.run_action, "app.back")

    def _show_where(self) -> None:
        values = self.query_one(FormPanel).values()
        leaders = self._leaders_of(values["topic"])
        where = landing(self.session.snapshot, leaders, values, file=self._file)
        self.put("#where", cell_text(where, wraps=True))
        self.query_one(LimitsLine).judge(self.session.operations, values)
        newest = self.session.operations.sends.of(values["topic"])
        if newest is not None and newest.is_running and not self._is_sending:
            # Another view has begun it. Keys may call this again before the worker runs.
            self._shown = newest
            self.run_worker(partial(self._follow, newest), exclusive=True, group="produce")

    def _leaders_of(self, topic: str) -> Leaders:
        return self._leaders.get(topic) or known_leaders(self.session.snapshot, topic)

    def _say(self, line: str, style: str) -> None:
        self.put("#outcome", Text(line, style=style))


def _records_of_file(name: str) -> tuple[KeyAndValue, ...]:
    """In the place of key, value and count; none where no file is named."""
    return records_of(lines_in(Path(os.path.expanduser(name)), "file")) if name else ()


def _outcome(progress: ProduceProgress, acks: str) -> Text:
    lines = [cell_text(cell, wraps=True) for cell in progress_cells(progress, acks)]
    return Text("\n").join([*lines, *(_histogram(progress) if progress.total > 1 else ())])


def _histogram(progress: ProduceProgress) -> list[Text]:
    top = max((count for _, count in progress.histogram_ms), default=0)
    return [
        Text(f"{'≤ ' + latency_text(edge):>12}  {bar(count / top, BAR_WIDTH)} {count}")
        for edge, count in progress.histogram_ms
        if count
    ]
