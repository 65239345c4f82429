"""``partiscope tui``: the terminal screen."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from control.access.login import TERMINAL, use_login
from control.kafka.connection.connections import are_plain
from partiscope.cli.processes import tui_opening
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import (
    Bootstrap,
    Bus,
    Data,
    ReadOnly,
    Store,
    settings_at,
    target_with,
)
from partiscope.cli.shared.streams import is_piped
from partiscope.installation import TOUR_MARK


def tui(
    *,
    path: Annotated[
        str, typer.Argument(help="View to open, e.g. topics/orders/partitions/3.")
    ] = "overview",
    bootstrap: Bootstrap = None,
    store: Store = None,
    bus: Bus = None,
    data: Data = None,
    read_only: ReadOnly = False,
    mouse: Annotated[
        bool | None,
        typer.Option(help="Take clicks; without, the terminal selects text.  [default: mouse]"),
    ] = None,
) -> None:
    """Open the terminal screen: the same views, words and keys as the page."""
    if is_piped() or not sys.stderr.isatty():
        raise CommandError(
            "the terminal screen needs a terminal: run it from a shell, over SSH with `ssh -t`. "
            "For scripts there is `partiscope status --json`.",
            Exit.WRONG_USE,
        )
    if store is not None and "://" not in store and not Path(store).is_dir():
        raise CommandError(
            f"there is no store {store!r}: a folder that `partiscope metrics` writes. Correct "
            "--store, or name the --data of what runs.",
            Exit.WRONG_USE,
        )
    target = target_with(data=data, bootstrap=bootstrap, bus=bus, store=store, read_only=read_only)
    settings = settings_at(data)
    users = settings.users_file
    use_login(partial(users.process_login, TERMINAL))
    tui_opening.take(
        tui_opening.Opening(
            path=path,
            store=target.store,
            bus=target.bus,
            bus_id=target.bus_id,
            flags=target.flags,
            clusters=target.clusters,
            is_plain=are_plain() and not users.is_there and not settings.masking,
            tour=target.tour,
            tour_mark=str(settings.data.absolute() / TOUR_MARK),
            chain_file=str(settings.chain_file),
            key_files=tuple(map(str, (settings.key_file, *settings.proof.further_key_files))),
            has_mouse=settings.terminal.mouse if mouse is None else mouse,
        )
    )
