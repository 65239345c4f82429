"""``partiscope backup``: the data directory as one archive."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from control.views.format import bytes_text
from partiscope.backups import Backup, BackupError, write_backup
from partiscope.cli.shared.exits import CommandError
from partiscope.cli.shared.options import Data, Json, note, settings_with, write_json, write_lines


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE.tgz", help="Archive to write.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Write the data directory into one archive; end `up` first.

    Brokers, history and journal are in it; logs are not, nor is `partiscope.toml`.
    """
    folder = settings_with(data=data).data
    try:
        made = write_backup(folder, file, note)
    except BackupError as error:
        raise CommandError(str(error)) from error
    tell(made, f"wrote {made.file}", as_json=as_json)


def tell(made: Backup, words: str, *, as_json: bool) -> None:
    """Print the result, for people or as JSON."""
    if as_json:
        write_json(asdict(made))
        return
    write_lines(f"{words}: {made.files:,} files and folders, {bytes_text(made.size_bytes)}")
