"""The page of alerts: both tables, a button that ends each silence, and what an empty one means."""

from dataclasses import replace
from pathlib import Path

from control.views.paths import ViewPath
from dashboard.components.markup import markup
from dashboard.live.displayed_snapshot import Look
from dashboard.pages import alerts
from tests.unit.control.clusters import NOW_MS
from tests.unit.control.views.test_alert_tables import ANNAS, LONGER, TOLD
from tests.unit.dashboard.page_context import context_on, words_of


def test_each_silence_has_a_button_that_ends_it_and_a_window_has_none(tmp_path: Path) -> None:
    snapshot = context_on(tmp_path).snapshot
    told = replace(TOLD, silences=(ANNAS,), windows=(LONGER,))
    shown, silences = map(markup, alerts.blocks(replace(snapshot, alerts=told, built_ms=NOW_MS)))
    assert "billing" in shown
    assert "broker 101" in shown
    assert silences.count('data-form="end_silence"') == 1
    assert 'data-given="silence=si-1"' in silences


def test_without_any_it_tells_whether_somebody_delivers(tmp_path: Path) -> None:
    context = context_on(tmp_path)
    drawn = words_of(alerts.layout(context, ViewPath(view="alerts"), Look()))
    assert "Nobody delivers alerts from here" in drawn
    watched = replace(context.snapshot, alerts=replace(TOLD, alerts=()))
    assert "No alert is open" in markup(alerts.blocks(watched)[0])
    past = replace(context.snapshot, alerts=TOLD, is_past=True)
    assert "billing" not in markup(alerts.blocks(past))
