"""``partiscope broker``: one node."""

from pathlib import Path
from typing import Annotated

import typer


def broker(
    config: Annotated[Path, typer.Option(help="Kafka-style properties file of the node.")],
) -> None:
    """Run one node from a Kafka-style properties file until SIGTERM."""
    from broker.server.main import run

    raise typer.Exit(run(str(config)))
