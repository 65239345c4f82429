"""``partiscope doctor``: what could keep the product from running here, and what to do."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Final

import typer

from control.views.tables.rows import Tone
from partiscope.cli.shared.exits import Exit
from partiscope.cli.shared.options import (
    Bootstrap,
    CommandConfig,
    Data,
    Json,
    settings_with,
    write_json,
    write_lines,
)
from partiscope.cli.shared.tables import mark
from partiscope.diagnosis import Check, Verdict, diagnose

_TONES: Final = {
    Verdict.FINE: Tone.FINE,
    Verdict.WARNING: Tone.WARNING,
    Verdict.CRITICAL: Tone.CRITICAL,
}


def doctor(
    data: Data = None,
    reach: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,…",
            help="An address that must answer too; `--bootstrap` is the cluster to watch.",
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    command_config: CommandConfig = None,
    as_json: Json = False,
) -> None:
    """Check Java, Spark's connector, bundled brokers, ports, disk, memory, reachability."""
    settings = settings_with(
        data=data, bootstrap=bootstrap, command_config=command_config, may_create=True
    )
    checks = diagnose(settings, reach=reach, bundled=settings.bundled_bootstrap)
    if as_json:
        write_json({"checks": [asdict(check) for check in checks]})
    else:
        write_lines(*_lines(checks))
    if any(check.verdict is Verdict.CRITICAL for check in checks):
        raise typer.Exit(Exit.FAILED)


def _lines(checks: list[Check]) -> Iterator[str]:
    for check in checks:
        yield f"{mark(_TONES[check.verdict])} {check.name:<12} {check.found}"
        if check.next_step:
            yield f"  {'':<12} → {check.next_step}"
