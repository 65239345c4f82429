"""``partiscope elect``: preferred leaders."""

from typing import Annotated

import typer

from control.operations.catalogue.topics.elect_leaders import ElectLeaders
from partiscope.cli.shared.operations import Reason, run_operations
from partiscope.cli.shared.options import Bootstrap, DryRun, Json, Yes


def elect(
    *,
    topic: Annotated[
        list[str] | None, typer.Option(help="Only this topic, or a pattern; repeatable.")
    ] = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Make the first replica of every partition its leader again. Nothing is asked."""
    asked = ElectLeaders(topics=tuple(topic or ()), reason=reason)
    run_operations([asked], {"topics": topic or []}, bootstrap=bootstrap, dry_run=dry_run,
                   yes=yes, as_json=as_json)  # fmt: skip
