"""The metrics job on the page."""

from pathlib import Path

from dashboard.pages import job
from tests.unit.dashboard.page_context import context_on, words_of


def test_figures_of_the_job_and_how_they_went(tmp_path: Path) -> None:
    context = context_on(tmp_path)
    words = words_of(job.tiles(context.snapshot, context.now_ms()))
    assert all(text in words for text in ("batch time", "0.3 s", "delay", "0.7 s", "96"))
    times, samples, state = job.figures(context, "dark", context.span())
    assert [line["name"] for line in times["data"]] == ["batch time", "delay"]
    assert set(times["data"][0]["y"]) == {300.0}
    assert set(samples["data"][0]["y"]) == {3.0}
    assert set(state["data"][0]["y"]) == {96.0}


def test_before_the_job_has_written_it_is_said(tmp_path: Path) -> None:
    context = context_on(tmp_path, sizes=None)
    assert "written nothing yet" in words_of(job.tiles(context.snapshot, context.now_ms()))
