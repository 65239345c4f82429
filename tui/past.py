"""The application at a past time: tables, findings and charts of then, until told otherwise."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from control.views.paths import PathError, ViewPath, parse_path
from control.views.snapshots.past import AHEAD_MS_MAX, NothingKeptError, look_back
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.snapshots.store import StoreUnreadableError
from control.views.times import TimeError, parse_moment
from tui.charts import Stretch
from tui.clusters import ClusterApp
from tui.screens.base import ViewScreen
from tui.screens.time import TimeScreen
from tui.services import Services


class PastApp(ClusterApp):
    """Knows which moment is shown; ``at`` of a path is the same moment on the page."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.at_ms: int | None = None
        """The moment that is shown; None: now."""
        self._past: OperatorSnapshot | None = None
        self._asked = object()
        """Another one for each question about the past: only the answer to the last is shown."""
        self.stretch = Stretch()

    def action_time(self) -> None:
        """``@``: another time."""
        chooser = TimeScreen(
            now_ms=self.services.now_ms(),
            is_past=self.at_ms is not None,
            range_=self.stretch.words,
        )
        self.push_screen(chooser, self._time_chosen)

    def action_open(self, path: str) -> None:
        """Show a view; with ``at=…`` as it was then, with ``range=…`` so much of it in charts."""
        try:
            place = parse_path(path)
            if self.elsewhere(place):
                super().action_open(path)  # which comes back here when it is there
                return
            if range_ := place.query.get("range", ""):
                self.stretch.take(range_)
            if at := place.query.get("at", ""):
                self._go_back_to(parse_moment(at, now_ms=self.services.now_ms()))
        except PathError:
            super().action_open(path)  # it says what is wrong
            return
        except TimeError as error:
            words = f"{error}; shown is what was before"
            self.notify(words, severity="warning", markup=False)
        rest = {name: value for name, value in place.query.items() if name not in {"at", "range"}}
        super().action_open(str(replace(place, query=rest)))

    def link_of(self, path: ViewPath) -> str:
        """The path for others: with the moment, where it is not now, and the charts' range."""
        if self.stretch.words:
            path = replace(path, query={**path.query, "range": self.stretch.words})
        if self.at_ms is not None:
            moment = datetime.fromtimestamp(self.at_ms // 1000, tz=UTC)
            path = replace(path, query={**path.query, "at": f"{moment:%Y-%m-%dT%H:%M:%SZ}"})
        return super().link_of(path)

    def action_zoom(self, step: int) -> None:
        """``+`` and ``-``: less or more of the past in charts."""
        if self.stretch.zoom(step):
            self._stretch_changed()
        else:
            self.notify(f"charts show the {self.stretch.title}: there is no other range beyond")

    def action_shift(self, step: int) -> None:
        """``[`` and ``]``: half a range back, or forward, up to now."""
        now_ms = self.services.now_ms()
        span = self.stretch.span(until_ms=self.at_ms or now_ms)
        until_ms = span.until_ms + step * (span.until_ms - span.since_ms) // 2
        self._moment_chosen(min(until_ms, now_ms))

    def leave_past(self) -> None:
        """Back to now, whatever is still being read."""
        self.at_ms = self._past = None
        self._asked = object()

    def _left_cluster(self) -> None:
        self.leave_past()

    def _time_chosen(self, chosen: int | str | None) -> None:
        """A moment, or a range of the charts."""
        if isinstance(chosen, str):
            self.stretch.take(chosen)
            self._stretch_changed()
        elif chosen is not None:
            self._moment_chosen(chosen)

    def _moment_chosen(self, at_ms: int) -> None:
        now_ms = self.services.now_ms()
        if now_ms <= at_ms <= now_ms + AHEAD_MS_MAX:
            self.leave_past()
            self.show_again()
            self.ask_history()
        else:
            self._go_back_to(at_ms)

    def _go_back_to(self, at_ms: int) -> None:
        self._asked = asked = object()
        read = partial(self._read_past, self.services, at_ms, asked)
        self.run_worker(read, thread=True, exclusive=True, group="past")

    def _read_past(self, services: Services, at_ms: int, asked: object) -> None:
        """In a worker thread: history is read from files."""
        cluster, now_ms = services.feed.current.cluster.cluster, services.now_ms()
        try:
            past = look_back(services.history, cluster=cluster, at_ms=at_ms, now_ms=now_ms)
        except (NothingKeptError, StoreUnreadableError) as error:
            self.call_from_thread(self._show_past, asked, at_ms, error)
            return
        self.call_from_thread(self._show_past, asked, at_ms, past)

    def _show_past(self, asked: object, at_ms: int, past: OperatorSnapshot | Exception) -> None:
        if asked is not self._asked:
            return
        if isinstance(past, Exception):
            words = f"{past}. Shown is what was before."
            self.notify(words, severity="warning", markup=False)
            return
        self.at_ms, self._past = at_ms, past
        self.show_again()
        self.ask_history()

    def _stretch_changed(self) -> None:
        self.ask_history()
        self.notify(f"charts show the {self.stretch.title}")

    def ask_history(self) -> None:
        """The charts of the view on top, of another stretch of time."""
        if isinstance(self.screen, ViewScreen):
            self.screen.ask_history()

    def show_again(self) -> None:
        """Hook: what is shown has changed as a whole."""
