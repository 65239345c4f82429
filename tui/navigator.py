"""Goes from view to view: every way to another view, cluster or moment ends in ``open``."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from textual.app import App

from control.views.paths import PathError, ViewPath, parse_path
from control.views.snapshots.past import AHEAD_MS_MAX, NothingKeptError
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.snapshots.store import StoreUnreadableError
from control.views.times import TimeError, parse_moment
from tui.screens.base import ViewScreen
from tui.screens.dialogs.choose_cluster import ClustersScreen
from tui.screens.dialogs.time import TimeScreen
from tui.screens.lists.marked import MarkedScreen
from tui.screens.views import build_screen
from tui.terminal_session import TerminalSession
from tui.widgets.row_table import RowTable

_OF_SESSION = frozenset({"cluster", "at", "range"})
"""What a path says about the session, not about its view."""


class Navigator:
    """The stack of views of an application; the overview is its ground floor."""

    def __init__(
        self, app: App[Any], session: TerminalSession, changed: Callable[[], None]
    ) -> None:
        """``changed`` is called when another moment or cluster is shown."""
        self._app, self._session, self._changed = app, session, changed
        self._asked = object()
        """Another one for each question about the past: only the answer to the last is shown."""
        self._switching = Lock()

    def open(self, path: str, *, is_instead: bool = False) -> None:
        """Show the view of a path on top of the present one, or ``is_instead`` of it.

        ``cluster=…`` switches to that cluster, ``at=…`` to a moment, ``range=…`` sets the stretch
        of the charts.
        """
        try:
            view = parse_path(path)
        except PathError as error:
            _warn(self._app, f"{error}. `g` lists the views.")
            return
        cluster = view.query.get("cluster", "")
        if cluster not in ("", self._session.watched.name):
            self._open_elsewhere(cluster, view)
            return
        self._take_moment(view.query)
        query = {name: value for name, value in view.query.items() if name not in _OF_SESSION}
        view = replace(view, query=query)
        here = self._app.screen
        if isinstance(here, ViewScreen) and str(here.path) == str(view):
            return
        show = self._app.switch_screen if is_instead else self._app.push_screen
        show(build_screen(view, self._session))

    async def back(self) -> None:
        """One level back."""
        if len(self._app.screen_stack) > 2:
            await self._app.pop_screen()

    def open_form(self, name: str, given: Mapping[str, str], rows: Sequence[str] = ()) -> None:
        """The dialog of an operation, filled in; it leads to where its effect is seen. Where rows
        are marked it is about them, if the operation may be done to several."""
        denied = self._session.denied_words(name)
        if denied:
            _warn(self._app, denied)
            return
        from control.operations.catalogue import form_named
        from control.operations.catalogue.several import takes_several
        from tui.screens.dialogs.operation import OperationScreen

        form = form_named(name)
        rows = rows if takes_several(form) else ()
        dialog = OperationScreen(form, given, self._session, rows)
        self._app.push_screen(dialog, self.leave_form)

    def leave_form(self, path: str | None) -> None:
        """To where it is seen; a view of what is below that may be gone, so Esc must not lead
        there."""
        if path:
            if isinstance(self._app.screen, MarkedScreen):
                self._app.screen.forget_marks()
            while str(getattr(self._app.screen, "path", "")).startswith(f"{path}/"):
                self._app.pop_screen()
            self.open(path)

    def choose_cluster(self) -> None:
        """``c``: another cluster, on the same view."""
        clusters = self._session.clusters
        if len(clusters) == 1:
            words = "one cluster is watched: `partiscope up --cluster A --cluster B` for more"
            self._app.notify(words)
            return
        path = self._app.screen.path if isinstance(self._app.screen, ViewScreen) else ViewPath()

        def chosen(name: str | None) -> None:
            if name is not None and name != self._session.watched.name:
                self._open_elsewhere(name, path)

        self._app.push_screen(ClustersScreen(clusters), chosen)

    def choose_time(self) -> None:
        """``@``: another moment, or another range of the charts."""
        session = self._session

        def chosen(moment: int | str | None) -> None:
            if isinstance(moment, str):
                session.range.take(moment)
                _tell_range(self._app, self._session.range.title)
            elif moment is not None:
                self._go_to(moment)

        dialog = TimeScreen(
            now_ms=session.now_ms, is_past=session.at_ms is not None, range_=session.range.words
        )
        self._app.push_screen(dialog, chosen)

    def zoom(self, step: int) -> None:
        """More (1) or less (-1) of the past in charts."""
        if self._session.range.zoom(step):
            _tell_range(self._app, self._session.range.title)
        else:
            title = self._session.range.title
            self._app.notify(f"charts show the {title}: there is no other range beyond")

    def shift(self, step: int) -> None:
        """Half a range back (-1), or forward (1), up to now."""
        session = self._session
        span = session.range.span(until_ms=session.at_ms or session.now_ms)
        until_ms = span.until_ms + step * (span.until_ms - span.since_ms) // 2
        self._go_to(min(until_ms, session.now_ms))

    def leave_past(self) -> None:
        """Drops an answer about the past that is still being read."""
        self._asked = object()

    def _take_moment(self, query: Mapping[str, str]) -> None:
        try:
            if range_ := query.get("range", ""):
                self._session.range.take(range_)
            if at := query.get("at", ""):
                self._read_past(parse_moment(at, now_ms=self._session.now_ms))
        except TimeError as error:
            _warn(self._app, f"{error}; the view stays as it was")

    def _go_to(self, at_ms: int) -> None:
        now_ms = self._session.now_ms
        if now_ms <= at_ms <= now_ms + AHEAD_MS_MAX:
            self.leave_past()
            self._session.go_to_now()
            self._changed()
        else:
            self._read_past(at_ms)

    def _read_past(self, at_ms: int) -> None:
        """History is read from files, in a thread."""
        self._asked = asked = object()
        read, show = self._session.read_past(at_ms), partial(self._show_past, asked, at_ms)

        def work() -> None:
            try:
                found: OperatorSnapshot | Exception = read()
            except (NothingKeptError, StoreUnreadableError) as error:
                found = error
            self._app.call_from_thread(show, found)

        self._app.run_worker(work, thread=True, exclusive=True, group="past")

    def _show_past(self, asked: object, at_ms: int, past: OperatorSnapshot | Exception) -> None:
        if asked is not self._asked:
            return
        if isinstance(past, Exception):
            _warn(self._app, f"{past}. The view stays as it was.")
            return
        self._session.show_past(at_ms, past)
        self._changed()

    def _open_elsewhere(self, cluster: str, path: ViewPath) -> None:
        if cluster not in (each.name for each in self._session.clusters):
            _warn(self._app, f"no cluster {cluster} is watched here")
            return
        query = {**path.query, "cluster": cluster}
        self._app.run_worker(self._switch(cluster, str(replace(path, query=query))))

    async def _switch(self, cluster: str, path: str) -> None:
        """Everything from the other cluster; one switch after the other."""
        async with self._switching:
            if cluster != self._session.watched.name:
                self.leave_past()
                left = self._session.go_to(cluster)
                while len(self._app.screen_stack) > 1:
                    await self._app.pop_screen()
                await self._app.push_screen(build_screen(ViewPath(), self._session))
                if left is not None:
                    await left.__aexit__()
            self.open(path)


def show_help(app: App[Any]) -> None:
    """All keys."""
    from tui.screens.dialogs.help import HelpScreen  # the catalogue of operations comes with it

    app.push_screen(HelpScreen())


def explain_row(app: App[Any]) -> None:
    """The figures of the row under the cursor, those without room too."""
    from tui.screens.dialogs.explain import ExplainScreen

    tables, focused = app.screen.query(RowTable), app.focused
    table = focused if isinstance(focused, RowTable) else next(iter(tables), None)
    if table is None or table.page is None:
        app.notify("this view has no table to explain")
    else:
        app.push_screen(ExplainScreen(table.page.columns, table.pointed))


def _tell_range(app: App[Any], title: str) -> None:
    if isinstance(app.screen, ViewScreen):
        app.screen.ask_history()
    app.notify(f"charts show the {title}")


def _warn(app: App[Any], words: str) -> None:
    app.notify(words, severity="warning")
