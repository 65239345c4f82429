"""``partiscope moves report``: the report of a finished move, as a file or on standard output."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from control.model.watched_cluster import WatchedCluster
from control.operations.bus.client import MovesReader
from control.views.move_report.documents import WRITERS
from control.views.move_report.reading import read_report
from control.views.snapshots.store import StoreReader
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import note

ReportKind = Annotated[
    str | None,
    typer.Option("--format", help="With `report`: html, md or json.  [default: by FILE, else md]"),
]
ReportFile = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="FILE", help="With `report`: write it here.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWish:
    """The report that is asked for."""

    move: str | None
    """None: the newest that has ended."""
    kind: str | None
    out: Path | None

    @property
    def format(self) -> str:
        """Raises CommandError: status 2, no such file."""
        kind = self.kind or (self.out.suffix.removeprefix(".") if self.out else "") or "md"
        if kind not in WRITERS:
            known = ", ".join(WRITERS)
            raise CommandError(f"no report as {kind!r}: --format is one of {known}", Exit.WRONG_USE)
        return kind


async def write_report(
    bus: str | None, cluster: WatchedCluster | None, wish: ReportWish, *, store: str
) -> None:
    """Read the move and its history, and write the file."""
    writer = WRITERS[wish.format]
    async with MovesReader(bus) as client:
        state = await client.get(wish.move or await _newest(client, cluster))
    reader = StoreReader(store) if store else None
    cluster_id = (cluster.cluster_id if cluster else "") or ""
    report = await asyncio.to_thread(read_report, state, reader, cluster=cluster_id)
    text = writer.write(report)
    if wish.out is None:
        sys.stdout.write(text)
        return
    try:
        wish.out.write_text(text)
    except OSError as error:
        raise CommandError(f"cannot write {wish.out}: {error.strerror}") from error
    note(f"wrote the report of {state.operation_id} to {wish.out}")


async def _newest(client: MovesReader, cluster: WatchedCluster | None) -> str:
    states = [it for it in await client.list() if cluster is None or cluster.owns(it.site)]
    ended = [state.operation_id for state in states if state.is_finished]
    if not ended:
        raise CommandError("no reassignment has ended yet, so there is no report", Exit.WRONG_USE)
    return ended[0]
