"""``partiscope executor``: the process that carries out operations."""

import typer

from partiscope.cli.shared.options import Bus, known_bus, note, settings_with
from partiscope.identity import cluster_of_command
from partiscope.running import say


def executor(
    bus: Bus = None,
) -> None:
    """Carry out operations, one at a time on each cluster, until SIGTERM; a second one waits."""
    from control.kafka.connection.connections import settings_of
    from control.operations.executor.executor import ExecutorSettings, run

    # Also where the bus is given: commands name clusters by address, connections come from here.
    known = settings_with()
    address = bus or known_bus(known)
    settings = ExecutorSettings(
        bus=settings_of(address),
        cluster_of=lambda site: cluster_of_command(known, address, site),
        requires_proof=known.proof.required,
    )
    raise typer.Exit(run(settings, say=_say))


def _say(line: str) -> None:
    """Readiness on stdout, where a supervisor listens; everything else on stderr."""
    if line == "ready":
        say("ready for operations")
    else:
        note(f"executor: {line}")
