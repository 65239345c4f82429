"""``partiscope restore``: an archive of ``partiscope backup`` in the place of a data directory."""

from pathlib import Path
from typing import Annotated

import typer

from partiscope.backups import BackupError, restore_backup
from partiscope.cli.processes.backup import tell
from partiscope.cli.shared.exits import CommandError
from partiscope.cli.shared.options import Data, Json, note, settings_with


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE.tgz", help="Archive of `backup`.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Put a backup in the place of the data directory; end `up` first.

    The directory that is there is kept beside it. Moves that the backup calls unfinished go on with
    the next `up`.
    """
    folder = settings_with(data=data, may_create=True).data
    try:
        made = restore_backup(file, folder, note)
    except BackupError as error:
        raise CommandError(str(error)) from error
    kept = f"; what was there is {made.before}" if made.before else ""
    tell(made, f"restored {made.data}{kept}", as_json=as_json)
