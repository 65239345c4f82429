"""The commands of ``partiscope``: which there are, each loaded when it is called.

Help, version and completion of command names need no more than the list below.
"""

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from partiscope.cli.shared.grammar import meant, with_flag


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the contract; the file of its name in its folder is loaded when it is called."""

    name: str
    folder: str
    summary: str
    example: str
    is_group: bool = False
    is_service: bool = False
    """It runs until it is ended; what it writes is a log."""

    @property
    def module(self) -> str:
        return f"partiscope.cli.{self.folder}.{self.name.replace('-', '_')}"


COMMANDS: Final = (
    Command(
        name="up",
        folder="processes",
        is_service=True,
        summary="Run all of it, with a demo load, until Ctrl-C.",
        example="partiscope up --brokers 3 --data /tmp/demo",
    ),
    Command(
        name="down",
        folder="processes",
        summary="End what runs; --purge removes what was made.",
        example="partiscope down --data /tmp/demo",
    ),
    Command(
        name="cluster",
        folder="processes",
        is_service=True,
        summary="Run only the bundled brokers.",
        example="partiscope cluster --brokers 3 --port 9092 --data /tmp/demo",
    ),
    Command(
        name="broker",
        folder="processes",
        is_service=True,
        summary="Run one node from a Kafka-style properties file.",
        example="partiscope broker --config data/broker-101.properties",
    ),
    Command(
        name="metrics",
        folder="processes",
        is_service=True,
        summary="Run the Spark job that turns samples into figures.",
        example="partiscope metrics --bootstrap 127.0.0.1:9092 --store s",
    ),
    Command(
        name="executor",
        folder="processes",
        is_service=True,
        summary="Carry out operations, one at a time on each cluster.",
        example="partiscope executor --bus 127.0.0.1:9092",
    ),
    Command(
        name="collect",
        folder="processes",
        is_service=True,
        summary="Sample a Kafka cluster by its protocol alone.",
        example="partiscope collect --cluster prod --bus 127.0.0.1:9092",
    ),
    Command(
        name="dashboard",
        folder="processes",
        is_service=True,
        summary="Serve the web page.",
        example="partiscope dashboard --port 8050 --read-only",
    ),
    Command(
        name="exporter",
        folder="processes",
        is_service=True,
        summary="Serve figures and findings to Prometheus.",
        example="partiscope exporter --host 10.0.0.5 --port 9308",
    ),
    Command(
        name="tui",
        folder="processes",
        summary="Open the terminal screen.",
        example="partiscope tui topics/orders/partitions/3",
    ),
    Command(
        name="status",
        folder="watch",
        summary="Show cluster, findings, groups and age; exit 5 if critical.",
        example="partiscope status --json",
    ),
    Command(
        name="alerts",
        folder="watch",
        summary="List alerts and rules; silence, test, try on history.",
        example="partiscope alerts backtest --since 7d",
        is_group=True,
    ),
    Command(
        name="clusters",
        folder="watch",
        summary="List the watched clusters side by side.",
        example="partiscope clusters --json",
    ),
    Command(
        name="brokers",
        folder="resources",
        summary="List brokers with load and skew; describe or cordon one.",
        example="partiscope brokers --sort -skew",
        is_group=True,
    ),
    Command(
        name="topics",
        folder="resources",
        summary="List, describe, create, alter, delete topics.",
        example="partiscope topics list",
        is_group=True,
    ),
    Command(
        name="partitions",
        folder="resources",
        summary="List partitions with their figures, or describe one.",
        example="partiscope partitions --filter 'lag>10k broker:102'",
        is_group=True,
    ),
    Command(
        name="groups",
        folder="resources",
        summary="List, describe, alter (offsets), delete consumer groups.",
        example="partiscope groups describe billing",
        is_group=True,
    ),
    Command(
        name="configs",
        folder="resources",
        summary="List and describe configs of topics and brokers.",
        example="partiscope configs describe orders",
        is_group=True,
    ),
    Command(
        name="what-if",
        folder="watch",
        summary="Show what fails if a broker or rack dies.",
        example="partiscope what-if --broker 103",
    ),
    Command(
        name="plan",
        folder="reassignments",
        summary="Plan a reassignment; changes nothing.",
        example="partiscope plan --goal minimal --out plan.json",
    ),
    Command(
        name="check",
        folder="reassignments",
        summary="Judge a plan of any tool; exit 3 if it fails.",
        example="partiscope check plan.json --max-waste 20",
    ),
    Command(
        name="reassign",
        folder="reassignments",
        summary="Check a plan, then run it until it is done.",
        example="partiscope reassign plan.json --throttle auto --yes",
    ),
    Command(
        name="moves",
        folder="reassignments",
        summary="List reassignments; watch, pause, cancel, roll back one.",
        example="partiscope moves watch",
    ),
    Command(
        name="elect",
        folder="reassignments",
        summary="Make preferred replicas leaders again.",
        example="partiscope elect --topic orders",
    ),
    Command(
        name="journal",
        folder="watch",
        summary="List what was changed: when, by whom, why.",
        example="partiscope journal --since 1d",
    ),
    Command(
        name="history",
        folder="watch",
        summary="Ask history by SQL: tables, times, spans.",
        example='partiscope history "SELECT max(lag) FROM group_history"',
    ),
    Command(
        name="export",
        folder="watch",
        summary="Export history as Delta tables for other engines.",
        example="partiscope export --to /lake/partiscope",
    ),
    Command(
        name="produce",
        folder="messages",
        summary="Send messages: typed, generated, or lines of a pipe.",
        example="partiscope produce orders --key user-7 --value hello",
    ),
    Command(
        name="tail",
        folder="messages",
        summary="Show messages of a topic, and follow it.",
        example="partiscope tail orders --since 10m --filter user-7",
    ),
    Command(
        name="browse",
        folder="messages",
        summary="Show one message in full, decoded and raw.",
        example="partiscope browse orders --partition 3 --offset 1200",
    ),
    Command(
        name="segments",
        folder="resources",
        summary="Show segment files and indexes of a partition.",
        example="partiscope segments orders 3 --json",
    ),
    Command(
        name="demo",
        folder="processes",
        is_service=True,
        summary="Run a load that gives the screens something to show.",
        example="partiscope demo --bootstrap 127.0.0.1:9092",
    ),
    Command(
        name="setup",
        folder="processes",
        summary="Fetch what Spark needs, once; `up` does it too.",
        example="partiscope setup",
    ),
    Command(
        name="users",
        folder="processes",
        summary="List, add, remove users of the page; give roles.",
        example="partiscope users add alice --role operator",
        is_group=True,
    ),
    Command(
        name="tokens",
        folder="processes",
        summary="Add, list and remove tokens of programs for the API.",
        example="partiscope tokens add nightly --role operator --expires 30d",
        is_group=True,
    ),
    Command(
        name="backup",
        folder="processes",
        summary="Write the data directory into one archive.",
        example="partiscope backup /srv/backups/partiscope.tgz",
    ),
    Command(
        name="restore",
        folder="processes",
        summary="Put a backup in the place of the data directory.",
        example="partiscope restore /srv/backups/partiscope.tgz",
    ),
    Command(
        name="doctor",
        folder="processes",
        summary="Check what could keep it from running here.",
        example="partiscope doctor",
    ),
)


class _Unloaded(TyperCommand):
    """Stands for a command in help and completion, and loads it when it is called."""

    def __init__(self, command: Command) -> None:
        super().__init__(command.name, help=command.summary, rich_markup_mode=None)
        self.command = command

    def make_context(self, *args: Any, **more: Any) -> Any:
        return loaded(self.command).make_context(*args, **more)


class _Program(TyperGroup):
    """Tells what was typed wrongly in plain words, and what may have been meant."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _plain(error.message)
            raise
        except Exception as error:
            if hasattr(error, "possibilities"):  # an unknown flag: the class is private
                _tell_meant(error)
            raise


def _tell_meant(error: Any) -> None:
    offered = {name for it in error.ctx.command.params for name in (*it.opts, *it.secondary_opts)}
    near, error.possibilities = meant(error.option_name, offered), None
    error.message += f". Did you mean {near}?" if near else ""


def _plain(message: str) -> str:
    """Without what its library says of itself, and with the nearest of the words that there are."""
    words = message.removeprefix("Value error, ")
    wrong, *known = re.findall(r"'([^']*)'", words) if " is not one of " in words else [""]
    near = get_close_matches(wrong, known, n=1)
    return f"{words} Did you mean {near[0]!r}?" if near else words


def build_program() -> TyperGroup:
    """The whole program; it loads a command when the command is called."""
    app = _app(has_completion=True)
    program = typer.main.get_command(app)
    assert isinstance(program, TyperGroup)
    for command in COMMANDS:
        program.add_command(_Unloaded(command))
    return program


def loaded(command: Command) -> Any:
    """The command itself, with what it needs."""
    app, module = _app(), import_module(command.module)
    if command.is_group:
        for each in module.app.registered_commands:
            each.callback = _offering_data(each.callback)
        app.add_typer(module.app, name=command.name, epilog=f"Example: {command.example}")
    else:
        function = _offering_data(getattr(module, command.name.replace("-", "_")))
        app.command(command.name, epilog=f"Example: {command.example}")(function)
    program = typer.main.get_command(app)
    assert isinstance(program, TyperGroup)
    return program.commands[command.name]


def load_called(arguments: list[str]) -> Command | None:
    """Have ready what a command line needs: the command that it calls."""
    for command in COMMANDS:
        if command.name in arguments[:1]:
            import_module(command.module)
            return command
    return None


def _app(*, has_completion: bool = False) -> typer.Typer:
    app = typer.Typer(
        name="partiscope",
        cls=_Program,
        help="See and steer Kafka partitions.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=has_completion,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    return app


def _offering_data(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--data`` for a command that has none of its own: what runs from there is found."""
    from partiscope.cli.shared.options import Data, check_data_directory

    if "data" in signature(function).parameters:
        return function

    def act(data: Path | None, call: Callable[[], Any]) -> Any:
        if data is not None:
            check_data_directory(data)
            os.environ["PARTISCOPE_DATA"] = str(data)
        return call()

    return with_flag(function, "data", Data, act)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        sys.stdout.write(f"partiscope {version('partiscope')}\n")
        raise typer.Exit


def options(
    is_version_wanted: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """See and steer Kafka partitions."""
