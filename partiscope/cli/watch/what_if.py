"""``partiscope what-if``: what a broker or rack takes along when it is lost."""

from typing import Annotated, Any, Final

import typer

from control.views.cluster.what_if import SURVIVORS, Loss, WhatIf, hit_page, losses
from control.views.cluster.what_if import what_if as ask
from control.views.format import plural_text
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.export import cells_of, values_of
from control.views.tables.query import TableQuery
from control.views.tables.rows import Cell
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.listing import At, snapshot_for
from partiscope.cli.shared.options import Bootstrap, Json, Store, write_json, write_lines
from partiscope.cli.shared.tables import (
    figure,
    mark,
    room,
    words,
    write_page,
    write_rows,
    write_values,
)

HIT_MAX: Final = 20
"""Partitions that people are shown, the worst first; --json has all."""


def what_if(
    *,
    broker: Annotated[int | None, typer.Option(min=0, help="Id of the broker that dies.")] = None,
    rack: Annotated[str | None, typer.Option(help="All brokers of this rack die.")] = None,
    at: At = None,
    bootstrap: Bootstrap = None,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """Shows what would be offline, who would lead, and the extra load on survivors."""
    if (broker is None) == (rack is None):
        raise CommandError("name what is lost: --broker ID or --rack NAME", Exit.WRONG_USE)
    snapshot = snapshot_for(bootstrap=bootstrap, store=store, at=at)
    kind, value = ("broker", str(broker)) if rack is None else ("rack", rack)
    loss = _loss(snapshot, kind, value)
    answer = ask(snapshot, loss)
    if as_json:
        write_json(_document(answer))
        return
    _print_counts(answer)
    write_lines("", "SURVIVORS")
    write_rows(SURVIVORS.columns, answer.survivors)
    hit = hit_page(answer, TableQuery(limit=HIT_MAX))
    write_lines("", f"ITS PARTITIONS, as they would be ({plural_text(hit.total, 'partition')})")
    write_page(hit)
    if answer.findings:
        write_lines("", "FINDINGS that would be new")
        for row in answer.findings:
            write_lines(f"{mark(row.severity.tone)} {row.label.text}: {row.title.text}")


def _print_counts(answer: WhatIf) -> None:
    """Sentences; for a program a figure under each head."""
    if room() is None:
        counts = ("offline", "under_min_isr", "new_leaders", "replicas", "groups")
        lost = (words(answer.loss.kind), answer.loss.value)
        write_values([lost, *((figure(it), getattr(answer, it).value) for it in counts)])
        return
    write_lines(
        f"If {answer.loss.words} fails: {_counted(answer.offline, 'more partition')} offline,",
        f"{answer.under_min_isr.text} more below min.insync.replicas, "
        f"{answer.new_leaders.text} with another leader,",
        f"{_counted(answer.replicas, 'replica')} unreachable. Groups held up: {answer.groups.text}",
    )


def _loss(snapshot: OperatorSnapshot, kind: str, value: str) -> Loss:
    known = [each for each in losses(snapshot) if each.kind == kind]
    found = next((each for each in known if each.value == value), None)
    if found is None:
        there = ", ".join(each.value for each in known) or "none"
        raise CommandError(f"there is no {kind} {value!r}; there are {there}", Exit.WRONG_USE)
    return found


def _counted(cell: Cell, noun: str) -> str:
    assert cell.value is None or isinstance(cell.value, int | float)
    return plural_text(cell.value, noun)


def _document(answer: WhatIf) -> dict[str, Any]:
    return {
        "lost": {answer.loss.kind: answer.loss.value, "brokers": list(answer.loss.brokers)},
        "offline": answer.offline.value,
        "under_min_isr": answer.under_min_isr.value,
        "new_leaders": answer.new_leaders.value,
        "replicas": answer.replicas.value,
        "groups_held_up": answer.groups.value,
        "survivors": [cells_of(row) for row in answer.survivors],
        "partitions": values_of(hit_page(answer)),
        "new_findings": [
            {"severity": row.severity.text, "subject": row.label.text, "title": row.title.text}
            for row in answer.findings
        ],
    }
