"""``partiscope down``: ends what runs, and removes it where that is asked for."""

from typing import Annotated

import typer

from control.messages.state_file import state_file
from control.views.format import bytes_text
from partiscope.cli.shared.confirm import require_typed
from partiscope.cli.shared.options import (
    Data,
    DryRun,
    Json,
    Yes,
    check_data_directory,
    note,
    write_json,
    write_lines,
)
from partiscope.removal import Removal, end, find_holder, find_made, remove
from partiscope.settings import load_settings
from spark_metrics.job.connector_jars import cache_folder

Purge = Annotated[
    bool, typer.Option("--purge", help="Also remove what was made in the data directory.")
]


def down(
    data: Data = None,
    purge: Purge = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """End the `up` or `cluster` that runs from the data directory.

    `--purge` then removes records, history, journal and key: only what Partiscope made there.
    """
    folder = (data or load_settings().data).absolute()
    check_data_directory(folder)
    runs = find_holder(folder)
    removal = find_made(folder) if purge else None
    if removal is not None and not as_json:
        _tell(removal)
    if dry_run:
        told = f"process {runs} would be ended" if runs else f"nothing runs from {folder}"
        _write(told, runs, removal, as_json=as_json)
        return
    if removal is not None:
        what = f"{bytes_text(removal.size_bytes)} in {folder} are removed for good"
        require_typed(folder.name, what, is_confirmed=yes)
    if runs is not None:
        note(f"ending process {runs}")
        end(folder, runs)
    if removal is None:
        told = f"ended; {folder} stays" if runs else f"nothing runs from {folder}"
        _write(told, runs, None, as_json=as_json)
        return
    found = find_made(folder)  # its end may have written more
    remove(found)
    told = f"removed {found.files:,} files, {bytes_text(found.size_bytes)}"
    stays = f"\n{folder} stays: it holds other files" if folder.exists() else ""
    _write(told + stays, runs, found, as_json=as_json)


def _write(words: str, process: int | None, removal: Removal | None, *, as_json: bool) -> None:
    if not as_json:
        write_lines(words)
        return
    write_json(
        {
            "process": process,
            "removed": [str(it) for it in removal.made] if removal else [],
            "left": [str(it) for it in removal.others] if removal else [],
            "files": removal.files if removal else 0,
            "bytes": removal.size_bytes if removal else 0,
        }
    )


def _tell(removal: Removal) -> None:
    for path in removal.made:
        write_lines(f"removes {path}")
    for path in removal.others:
        write_lines(f"leaves  {path}")
    for kept in (cache_folder(), state_file("")):
        if kept is not None and kept.exists():
            write_lines(f"leaves  {kept}, which other installations of yours use too")
