"""``partiscope brokers acks-lesson``: what acknowledgements are worth while a broker is killed."""

from typing import Annotated

import typer

from control.operations.catalogue.brokers.teach_acks import TeachAcks
from partiscope.cli.reassignments.drain import Broker
from partiscope.cli.shared.operations import Reason, run_operations
from partiscope.cli.shared.options import Bootstrap, DryRun, Json, Yes


def acks_lesson(
    broker: Broker,
    *,
    stopped_s: Annotated[
        int, typer.Option("--seconds", min=1, max=50, help="How long the broker is stopped.")
    ] = 4,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Kill a bundled broker while records are sent with acks 0, 1 and all; tell what survived.

    The supervisor starts the broker again, also when this command is killed.
    """
    asked = TeachAcks(broker=broker, stopped_s=stopped_s, reason=reason)
    run_operations([asked], {"broker": broker}, bootstrap=bootstrap, dry_run=dry_run, yes=yes,
                   as_json=as_json)  # fmt: skip
