"""``partiscope down``: ends what runs, and removes it where that is asked for."""

from typing import Annotated

import typer

from control.messages.state_file import state_file
from control.views.format import bytes_text
from partiscope.cli.shared.confirm import require_typed
from partiscope.cli.shared.options import (
    Data,
    DryRun,
    Yes,
    check_data_directory,
    note,
    write_lines,
)
from partiscope.removal import Removal, end, find_holder, find_made, remove
from partiscope.settings import load_settings
from spark_metrics.job.connector_jars import cache_folder

Purge = Annotated[
    bool, typer.Option("--purge", help="Also remove what was made in the data directory.")
]


def down(
    data: Data = None, purge: Purge = False, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """End the `up` or `cluster` that runs from the data directory.

    `--purge` then removes records, history, journal and key: only what Partiscope made there.
    """
    folder = (data or load_settings().data).absolute()
    check_data_directory(folder)
    runs = find_holder(folder)
    removal = find_made(folder) if purge else None
    if removal is not None:
        _tell(removal)
    if dry_run:
        write_lines(f"process {runs} would be ended" if runs else f"nothing runs from {folder}")
        return
    if removal is not None:
        what = f"{bytes_text(removal.size_bytes)} in {folder} are removed for good"
        require_typed(folder.name, what, is_confirmed=yes)
    if runs is not None:
        note(f"ending process {runs}")
        end(folder, runs)
    if removal is None:
        write_lines(f"ended; {folder} stays" if runs else f"nothing runs from {folder}")
        return
    found = find_made(folder)  # its end may have written more
    remove(found)
    write_lines(f"removed {found.files:,} files, {bytes_text(found.size_bytes)}")
    if folder.exists():
        write_lines(f"{folder} stays: it holds other files")


def _tell(removal: Removal) -> None:
    for path in removal.made:
        write_lines(f"removes {path}")
    for path in removal.others:
        write_lines(f"leaves  {path}")
    for kept in (cache_folder(), state_file("")):
        if kept is not None and kept.exists():
            write_lines(f"leaves  {kept}, which other installations of yours use too")
