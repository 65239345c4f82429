"""One question before something changes; a word to type where it destroys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from control.operations import checks
from control.views.printable import visible

if TYPE_CHECKING:  # a Kafka client comes with it
    from control.operations.previews import Previewed


class ConfirmScreen(ModalScreen[bool]):
    """``y`` or Enter confirms, Esc does not; with ``word``, it must be typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(False)", "no"),
        Binding("n", "dismiss(False)", show=False),
        Binding("y", "yes", "yes"),
        Binding("enter", "yes", show=False),
    ]

    def __init__(self, question: str, *, word: str | None = None, typed: str = "") -> None:
        """``typed`` is what stands in the field of the word already."""
        super().__init__()
        self._question = question
        self._word = word
        self.typed = typed

    def compose(self) -> ComposeResult:
        """The question and how to answer it."""
        with Vertical(id="confirm"):
            yield Static(visible(self._question, keeps_lines=True), markup=False)
            if self._word is None:
                yield Static("y or Enter confirms · Esc changes nothing", classes="hint")
            else:
                yield Static(
                    f"type {visible(self._word)} to confirm · Esc changes nothing", markup=False
                )
                yield Input(self.typed, id="word", compact=True, select_on_focus=False)
                yield Static("", id="word-problem", classes="wrong", markup=False)

    def action_yes(self) -> None:
        """Confirmed, where no word is asked."""
        if self._word is None:
            self.dismiss(True)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Kept for who asks again."""
        self.typed = event.value

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The word must match."""
        event.stop()
        typed = event.value.strip()
        if self._word in (typed, event.value):  # a group's name may end with a blank
            self.dismiss(True)
        else:
            words = visible(f"✖ {typed!r} is not {self._word!r}" if typed else "")
            self.query_one("#word-problem", Static).update(words)


class Confirming:
    """Questions about the previews of one view: a word stays typed while the preview says the
    same."""

    def __init__(self) -> None:
        self._before: Previewed | None = None
        self._asked: ConfirmScreen | None = None

    def ask(self, previewed: Previewed, question: str) -> ConfirmScreen:
        """The question about a preview."""
        typed = self._asked.typed if self._asked is not None else ""
        kept, changed = previewed.keeps(typed, self._before)
        lines = [question, f"▲ {changed}"] if changed else [question]
        self._before = previewed
        self._asked = ConfirmScreen("\n".join(lines), word=previewed.word or None, typed=kept)
        return self._asked


class RateScreen(ModalScreen[str | None]):
    """One rate; Esc leaves it as it is."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "leave it")]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question, a field, what is wrong with it."""
        with Vertical(id="confirm"):
            yield Static(self._question, markup=False)
            yield Input(id="rate", compact=True)
            yield Static("", id="rate-problem", classes="wrong", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A rate closes the question."""
        event.stop()
        problem = checks.throttle(event.value.strip())
        if problem is None:
            self.dismiss(event.value.strip())
        else:
            self.query_one("#rate-problem", Static).update(problem)
