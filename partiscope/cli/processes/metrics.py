"""``partiscope metrics``: the Spark job."""

import os
import sys
from typing import Annotated

import typer

from partiscope.cli.shared.options import (
    Bootstrap,
    Data,
    Store,
    known_bus,
    require_addresses,
    settings_with,
)


def metrics(
    *,
    bootstrap: Bootstrap = None,
    store: Store = None,
    checkpoint: Annotated[str | None, typer.Option(help="Folder or URL of the checkpoint.")] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master, e.g. local[2] or spark://host:7077.")
    ] = None,
    trigger_ms: Annotated[int | None, typer.Option(min=100, help="Time between batches.")] = None,
    data: Data = None,
) -> None:
    """Turn the samples of the metrics topic into aggregates until SIGTERM."""
    settings = settings_with(data=data, may_create=True)
    flags = {
        "--bootstrap": known_bus(settings)
        if bootstrap is None
        else require_addresses(bootstrap, "--bootstrap"),
        "--store": store or settings.store,
        "--checkpoint": checkpoint or settings.checkpoint,
        "--master": master or settings.metrics.master,
        "--trigger-ms": str(trigger_ms or settings.metrics.trigger_ms),
    }
    if settings.bus_config is not None and bootstrap is None:
        flags["--command-config"] = str(settings.bus_config)
    words = [word for flag in flags.items() for word in flag]
    # The job replaces this process, so that signals and statuses are its own.
    os.execv(  # noqa: S606 (our own program, no shell)
        sys.executable, [sys.executable, "-P", "-m", "spark_metrics", *words]
    )
