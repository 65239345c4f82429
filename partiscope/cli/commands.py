"""The commands of ``partiscope``: which there are, and the application that parses one."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from partiscope.cli.options import Data, check_data_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the contract; ``partiscope.cli.<name>`` holds it, loaded when it is called."""

    name: str
    example: str
    is_group: bool = False


COMMANDS: Final = (
    Command(name="up", example="partiscope up --brokers 3 --data /tmp/demo"),
    Command(name="cluster", example="partiscope cluster --brokers 3 --port 9092 --data /tmp/demo"),
    Command(name="broker", example="partiscope broker --config data/broker-101.properties"),
    Command(name="metrics", example="partiscope metrics --bootstrap 127.0.0.1:9092 --store s"),
    Command(name="executor", example="partiscope executor --bus 127.0.0.1:9092"),
    Command(name="collect", example="partiscope collect --cluster prod --bus 127.0.0.1:9092"),
    Command(name="dashboard", example="partiscope dashboard --port 8050 --read-only"),
    Command(name="tui", example="partiscope tui topics/orders/partitions/3"),
    Command(name="status", example="partiscope status --json"),
    Command(name="clusters", example="partiscope clusters --json"),
    Command(name="topics", example="partiscope topics list", is_group=True),
    Command(name="groups", example="partiscope groups describe billing", is_group=True),
    Command(name="plan", example="partiscope plan --goal minimal --out plan.json"),
    Command(name="reassign", example="partiscope reassign plan.json --throttle auto --yes"),
    Command(name="moves", example="partiscope moves watch"),
    Command(name="elect", example="partiscope elect --topic orders"),
    Command(name="produce", example="partiscope produce orders --key user-7 --value hello"),
    Command(name="tail", example="partiscope tail orders --since 10m --filter user-7"),
    Command(name="segments", example="partiscope segments orders 3 --json"),
    Command(name="demo", example="partiscope demo --bootstrap 127.0.0.1:9092"),
    Command(name="doctor", example="partiscope doctor"),
)


def build_app(names: set[str]) -> typer.Typer:
    """The application with these commands; loading only what is called keeps it quick."""
    app = typer.Typer(
        name="partiscope",
        help="See and steer Kafka partitions.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    for command in COMMANDS:
        if command.name in names:
            _add(app, command)
    return app


def called(arguments: list[str]) -> set[str]:
    """Names of the commands that a command line needs: the one that it calls, else all."""
    every = {command.name for command in COMMANDS}
    return every & set(arguments[:1]) or every


def load(names: set[str]) -> None:
    """Have what these commands need ready."""
    for name in names:
        import_module(f"partiscope.cli.{name}")


def _add(app: typer.Typer, command: Command) -> None:
    module = import_module(f"partiscope.cli.{command.name}")
    if command.is_group:
        for each in module.app.registered_commands:
            each.callback = _offering_data(each.callback)
        app.add_typer(module.app, name=command.name, epilog=f"Example: {command.example}")
        return
    function = _offering_data(getattr(module, command.name))
    app.command(command.name, epilog=f"Example: {command.example}")(function)


def _offering_data(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--data`` for a command that has none of its own: what runs from there is found."""
    own = signature(function)
    if "data" in own.parameters:
        return function

    @wraps(function)
    def with_data(*args: Any, data: Path | None = None, **flags: Any) -> Any:
        if data is not None:
            check_data_directory(data)
            os.environ["PARTISCOPE_DATA"] = str(data)
        return function(*args, **flags)

    offered = Parameter("data", Parameter.KEYWORD_ONLY, default=None, annotation=Data)
    with_data.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*own.parameters.values(), offered]
    )
    with_data.__annotations__ = {**function.__annotations__, "data": Data}
    return with_data


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
