"""Findings first: one line each, worst on top; Enter opens what it is about, ``d`` takes its next
step."""

from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from control.model.command_line import typed
from control.views.next_steps import action_of
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.findings import FindingRow, consequence_words
from tui.messages import FormChosen, PathChosen
from tui.tones import STYLES

SHOWN_MAX: Final = 6
FRAME: Final = 5
"""Columns of a line that padding and scrollbar take."""


class _Finding(Option):
    """A line that knows what it is about, wherever it may stand by then."""

    def __init__(self, line: Text, path: str) -> None:
        super().__init__(line)
        self.path = path


class FindingsList(OptionList):
    """The strip of findings on the overview, and the whole list on its own view."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "take_step", "its next step", show=True),
    ]

    def __init__(
        self,
        *,
        id: str,  # noqa: A002
        shown_max: int = SHOWN_MAX,
        has_reasons: bool = False,
    ) -> None:
        super().__init__(id=id)
        self._shown_max = shown_max
        self._has_reasons = has_reasons
        self._rows: tuple[FindingRow, ...] = ()
        self._keys: tuple[tuple[str, str], ...] = ()

    @property
    def pointed(self) -> FindingRow | None:
        """The finding under the cursor, when the strip has the keys."""
        at = self.highlighted
        if not self.has_focus or at is None or at >= len(self._rows):
            return None
        return self._rows[at]

    def show(self, snapshot: OperatorSnapshot, *, room: int = 0) -> None:
        """The findings of a snapshot, more of them where there is ``room`` for more lines; one calm
        line when there are none."""
        self._rows = snapshot.finding_rows[: max(self._shown_max, room)]
        total = len(snapshot.finding_rows)
        title = f"FINDINGS {total}" if total else "FINDINGS none"
        if self.border_title != title:
            self.border_title = title
        to_text = _in_full if self._has_reasons else _line
        lines = [to_text(row, self.app.size.width) for row in self._rows] or [_calm(snapshot)]
        keys = tuple((row.key, row.path) for row in self._rows)
        if keys == self._keys and self.option_count == len(lines):
            for index, line in enumerate(lines):
                if self.get_option_at_index(index).prompt != line:
                    self.replace_option_prompt_at_index(index, line)
            return
        at = self.highlighted
        pointed = self._keys[at] if at is not None and at < len(self._keys) else None
        self.clear_options()
        paths = [row.path for row in self._rows] or [""]
        self.add_options(_Finding(line, path) for line, path in zip(lines, paths, strict=True))
        self._keys = keys
        self.can_focus = bool(self._rows)
        if pointed is not None and pointed in keys:
            self.highlighted = keys.index(pointed)

    def action_take_step(self) -> None:
        """Open the view or form of the next step under the cursor, else of the first finding."""
        row = self.pointed or next(iter(self._rows), None)
        if row is None:
            return
        action = action_of(row)
        if action.form:
            self.post_message(FormChosen(action.form, dict(action.given)))
        elif action.path:
            self.post_message(PathChosen(action.path))
        else:
            self.notify(f"not done here: {row.next_step.text}", markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open what the finding is about."""
        event.stop()
        if isinstance(event.option, _Finding) and event.option.path:
            self.post_message(PathChosen(event.option.path))


def _line(row: FindingRow, width: int) -> Text:
    style = STYLES[row.severity.tone]
    line = Text.assemble(
        (f"{row.severity.shape} {row.label.text}  ", style),
        row.title.text,
        (f"  {row.since.text}", "dim"),
        (f"  {consequence_words(row)}" if row.consequences else "", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
    if line.cell_len + len(row.next_step.text) + 4 <= width - FRAME:
        line.append(f"  → {row.next_step.text}", style="dim")
    line.truncate(width - FRAME, overflow="ellipsis")
    return line


def _in_full(row: FindingRow, width: int) -> Text:
    """A finding in full: title, since, reason, consequences, next step."""
    return Text.assemble(
        (f"{row.severity.shape} {row.label.text}  ", STYLES[row.severity.tone]),
        (row.title.text, "bold"),
        (f"  {row.since.text}", "dim"),
        f"\n  {row.reason.text}",
        f"\n  {words}" if (words := consequence_words(row)) else "",
        (f"\n  → {row.next_step.text}", "dim"),
    )


def _calm(snapshot: OperatorSnapshot) -> Text:
    if snapshot.is_empty:
        waiting = "waiting for the first figures …; `partiscope doctor` says what is missing"
        return Text(snapshot.unwatched or typed(waiting), style="dim")
    line = Text("✔ nothing is wrong", style="green")
    return line.append(f"; {snapshot.behind_words}", "dim") if snapshot.behind_words else line
