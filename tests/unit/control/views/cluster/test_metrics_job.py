"""The metrics job in words: in time, slow, behind, silent."""

from typing import Any

import pytest

from control.views.cluster.metrics_job import job_document, job_figures
from control.views.format import duration_text, phrase
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.tables.rows import Tone
from tests.support.phrases import lacking
from tests.unit.control.clusters import NOW_MS, broker, tables

FINE = {
    "batch_id": 7, "batch_ms": 400, "records": 3, "bad_records": 0, "bad_records_total": 0,
    "lost_records_total": 0, "late_rounds_total": 0, "records_per_s": 3.0, "delay_ms": 900,
    "state_rows": 12, "newest_round_ms": NOW_MS, "written_ms": NOW_MS,
}  # fmt: skip


def snapshot(interval_ms: int = 1_000, **health: Any) -> OperatorSnapshot:
    made = tables(
        brokers=[{**broker(101), "interval_ms": interval_ms}], health=[{**FINE, **health}]
    )
    return build_snapshot(made, version=1, now_ms=NOW_MS)


def job_kinds(found: OperatorSnapshot) -> list[str]:
    return [it.kind for it in found.findings if it.label == "metrics job"]


@pytest.mark.parametrize(
    ("interval_ms", "health", "kinds"),
    [
        (1_000, {}, []),
        (1_000, {"batch_ms": 2_900}, []),
        (1_000, {"batch_ms": 3_100}, ["job-slow"]),
        (10_000, {"batch_ms": 9_900, "delay_ms": 15_000}, []),
        (10_000, {"batch_ms": 10_100}, ["job-slow"]),
        (1_000, {"delay_ms": 11_000}, ["job-behind"]),
        (1_000, {"delay_ms": 60_000, "batch_ms": 8_000}, ["job-behind", "job-slow"]),
        (1_000, {"bad_records_total": 2, "bad_records": 1}, ["bad-records"]),
    ],
)
def test_a_job_that_does_not_keep_up_is_a_finding(
    interval_ms: int, health: dict[str, int], kinds: list[str]
) -> None:
    found = snapshot(interval_ms, **health)
    assert job_kinds(found) == kinds
    assert {it.subject for it in found.findings if it.label == "metrics job"} <= {"job"}


HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("health", "left_ms"),
    [
        ({}, None),
        ({"catch_up_rate": 1.0}, None),
        ({"catch_up_rate": 22.4}, None),
        ({"delay_ms": 20 * HOUR_MS}, None),
        ({"delay_ms": 20 * HOUR_MS, "catch_up_rate": 0.4}, None),
        ({"delay_ms": 20 * HOUR_MS, "catch_up_rate": 1.0}, None),
        ({"delay_ms": 21 * HOUR_MS, "catch_up_rate": 22.0}, HOUR_MS),
        ({"delay_ms": HOUR_MS, "catch_up_rate": 1.5}, 2 * HOUR_MS),
    ],
)
def test_a_job_that_catches_up_says_how_fast_and_how_long(
    health: dict[str, Any], left_ms: float | None
) -> None:
    found = snapshot(**health)
    document = job_document(found, NOW_MS)
    assert document is not None
    assert document["catch_up_ms"] == left_ms
    for finding in (it for it in found.findings if it.kind == "job-behind"):
        told = phrase(finding.reason, finding.facts)
        assert finding.next_step.startswith("Wait") is (left_ms is not None)
        wanted = (f"{health['catch_up_rate']:g} times", duration_text(left_ms)) if left_ms else ()
        assert not lacking(told, *wanted)


def test_every_figure_has_its_unit_and_the_whole_its_age() -> None:
    figures = {it.name: it.cell for it in job_figures(snapshot(), NOW_MS + 1_500)}
    assert figures["batch_ms"].text == "0.4 s"
    assert figures["records_per_s"].text == "3.0 /s"
    assert figures["age_ms"].text == "1.5 s ago"
    late = {it.name: it.cell for it in job_figures(snapshot(), NOW_MS + 20_000)}
    assert late["age_ms"].tone is Tone.CRITICAL


def test_scripts_get_the_same_as_numbers() -> None:
    document = job_document(snapshot(records_per_s=None), NOW_MS + 1_500)
    assert document is not None
    assert (document["batch_ms"], document["interval_ms"], document["age_ms"]) == (
        400,
        1_000,
        1_500,
    )
    assert document["records_per_s"] is None
    assert job_document(build_snapshot(tables(), version=0, now_ms=NOW_MS), NOW_MS) is None
