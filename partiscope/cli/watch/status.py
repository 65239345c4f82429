"""``partiscope status``: what the overview shows, for a terminal line or a script."""

import enum
import time
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from control.collector.report_writer import WatchReport
from control.model.command_line import typed
from control.model.finding import Finding
from control.model.status import Severity
from control.views.cluster.metrics_job import job_document, job_figures
from control.views.format import age_text, phrase
from control.views.next_steps import plan_command
from control.views.plan_costs import WITHIN_S
from control.views.snapshots.snapshot import (
    OperatorSnapshot,
    broker_page,
    group_page,
)
from control.views.tables.cells import byte_rate_cell, count_cell, id_cell
from control.views.tables.export import values_of
from control.views.tables.findings import FindingRow, consequence_words
from control.views.tables.query import Page, TableQuery
from control.views.tables.rows import Cell, Fact, Tone
from partiscope.cli.shared.arguments import zoned
from partiscope.cli.shared.exits import Exit
from partiscope.cli.shared.listing import snapshot_of
from partiscope.cli.shared.options import (
    Bootstrap,
    Data,
    Json,
    Store,
    target_with,
    write_json,
    write_lines,
)
from partiscope.cli.shared.tables import (
    figure,
    mark,
    room,
    words,
    write_facts,
    write_page,
    write_table,
    write_values,
)
from partiscope.cli.shared.watching import watchable

ROWS_MAX = 1_000
SCHEMA = 1
"""Of the JSON document (docs/reference/status.schema.json): keys come, none goes or changes."""


class FailOn(enum.StrEnum):
    """The least severity of a finding that fails the command."""

    CRITICAL = "critical"
    WARNING = "warning"


@watchable()
def status(
    store: Store = None,
    bootstrap: Bootstrap = None,
    data: Data = None,
    as_json: Json = False,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Exit 5 from this severity of a finding on.")
    ] = FailOn.CRITICAL,
) -> None:
    """Cluster, findings, groups, age of the data; exit 5 when a critical finding stands."""
    target = target_with(data=data, bootstrap=bootstrap, store=store)
    snapshot = snapshot_of(target, time.time_ns() // 1_000_000, with_operations=True)
    _await_plan_costs(snapshot)
    if as_json:
        write_json(_document(snapshot, snapshot.built_ms))
    else:
        _print(snapshot, snapshot.built_ms)
    if any(it.severity >= Severity[fail_on.name] for it in snapshot.findings):
        raise typer.Exit(Exit.FINDING)
    if target.unreached is not None:
        raise typer.Exit(Exit.UNREACHABLE)


def _await_plan_costs(snapshot: OperatorSnapshot) -> None:
    for finding in snapshot.findings:
        snapshot.finding_row(finding)  # which asks for its own
    snapshot.plan_costs.wait(WITHIN_S)


def _document(snapshot: OperatorSnapshot, now_ms: int) -> dict[str, Any]:
    query = TableQuery(limit=ROWS_MAX)
    head = snapshot.headline
    return {
        "schema": SCHEMA,
        "cluster": head.cluster.value,
        "controller": head.controller.value,
        "age_ms": snapshot.age_ms(now_ms),
        "stale": snapshot.is_stale(now_ms),
        "topics": head.topics.value,
        "partitions": head.partitions.value,
        "moving": head.moving.value,
        "in_bytes_per_s": head.in_bytes.value,
        "out_bytes_per_s": head.out_bytes.value,
        "findings": [
            {
                **_finding_document(finding, row),
                "consequences": list(
                    map(_finding_document, finding.consequences, row.consequences)
                ),
                "parts": list(map(_finding_document, finding.parts, row.parts)),
            }
            for finding, row in zip(snapshot.findings, snapshot.finding_rows, strict=True)
        ],
        "brokers": values_of(broker_page(snapshot, query)),
        "groups": values_of(group_page(snapshot, query)),
        "metrics_job": job_document(snapshot, now_ms),
        "collector": None if snapshot.watch is None else asdict(snapshot.watch),
    }


def _finding_document(finding: Finding, row: FindingRow) -> dict[str, Any]:
    return {
        "id": finding.id,
        "severity": finding.severity.name.lower(),
        "kind": finding.kind,
        "subject": finding.subject,
        "title": phrase(finding.title, finding.facts),
        "reason": phrase(finding.reason, finding.facts),
        "since_ms": finding.since_ms,
        "next_step": row.next_step.text,
        "plan_command": typed(plan_command(row)).strip("`"),
    }


def _step(row: FindingRow) -> str:
    """The next step, with the command that shows its plan."""
    command = typed(plan_command(row))
    return f"{row.next_step.text}: {command}" if command else row.next_step.text


def _print(snapshot: OperatorSnapshot, now_ms: int) -> None:
    _print_head(snapshot, now_ms)
    write_lines("", "FINDINGS")
    for row in snapshot.finding_rows:
        severity = mark(row.severity.tone)
        write_lines(
            f"{severity} {row.label.text}: {row.title.text}  {zoned(row.since).text}",
            f"    {row.reason.text} → {_step(row)}",
            *([f"    {consequence_words(row)}"] if row.consequences else []),
        )
    if not snapshot.findings:
        write_lines(f"{mark(Tone.FINE)} nothing is wrong")
    write_lines("", "BROKERS")
    brokers = (
        "broker",
        "status",
        "rack",
        "replicas",
        "leaders",
        "size_bytes",
        "skew",
        "disk",
        "age",
    )
    _print_page(broker_page(snapshot, TableQuery(limit=ROWS_MAX)), brokers)
    if snapshot.watch is not None:
        write_lines("", "COLLECTOR")
        _print_collector(snapshot.watch)
    write_lines("", "GROUPS")
    groups = ("group", "status", "lag", "velocity", "clears", "members")
    shown = group_page(snapshot, TableQuery(limit=ROWS_MAX))
    _print_page(shown, groups)
    for group in shown.rows:
        if group.partitions.value and group.status_unknown_because.value:
            reason = f"no verdict because {group.status_unknown_because.text}"
            write_lines(f"    {group.group.text}: {reason} (rests on {group.rests_on.text})")
    if figures := job_figures(snapshot, now_ms):
        write_lines("", "METRICS JOB")
        write_facts(Fact(it.title, it.cell) for it in figures)


def _print_collector(watch: WatchReport) -> None:
    heads = map(figure, ("broker", "requests/s", "rows/s", "sends", "gets"))
    rows = [
        (
            id_cell(it.broker),
            Cell(it.requests_per_s, f"{it.requests_per_s:.1f}"),
            count_cell(round(it.rows_per_s)),
            byte_rate_cell(it.sent_bytes_per_s),
            byte_rate_cell(it.received_bytes_per_s),
        )
        for it in watch.brokers
    ]
    write_table(list(heads), rows)


def _print_head(snapshot: OperatorSnapshot, now_ms: int) -> None:
    """One line; for a program a figure under each head."""
    head, age_ms = snapshot.headline, snapshot.age_ms(now_ms)
    if room() is None:
        told = (
            (words("cluster"), head.cluster.value),
            (words("brokers"), head.brokers.text.split()[0]),
            (words("controller"), head.controller.value),
            (figure("in_bytes_per_s"), head.in_bytes.value),
            (figure("out_bytes_per_s"), head.out_bytes.value),
            (figure("moving"), head.moving.value),
            (figure("age_ms"), age_ms),
        )
        write_values(told)
        return
    cells = [head.cluster, head.brokers, head.controller, head.in_bytes, head.out_bytes]
    cells += [head.moving] if head.moving.value else []
    line = "  ".join(cell.text for cell in cells)
    old = f"{mark(Tone.CRITICAL)} " if snapshot.is_stale(now_ms) else ""
    write_lines(f"{line}  {old}{age_text(age_ms)}")


def _print_page(page: Page, names: tuple[str, ...]) -> None:
    columns = tuple(column for column in page.columns if column.id in names)
    write_page(replace(page, columns=columns), more="--json")
