"""Grammar of commands: create, alter, delete, describe, and list by default; flags of many."""

from collections.abc import Callable, Collection
from difflib import get_close_matches
from functools import partial, wraps
from inspect import Parameter, signature
from typing import Any, Final

from typer.core import TyperGroup

Function = Callable[..., Any]
CLOSE_ENOUGH: Final = 0.75
"""So alike are a flag and the one that may have been meant: `--yes` is not `--bus`."""
OF_OTHER_TOOLS: Final = {
    "--all-topics": "no --topic at all",
    "--bootstrap-server": "--bootstrap",
    "--broker-list": "--bootstrap",
    "--by-duration": "--to 1h",
    "--execute": "--yes",
    "--from-beginning": "--offset earliest",
    "--limit": "--count",
    "--max-messages": "--count",
    "--null": "--value null",
    "--replication-factor": "`partiscope plan --replication-factor`",
    "--shift-by": "--to",
    "--to-datetime": "--to",
    "--to-earliest": "--to earliest",
    "--to-latest": "--to latest",
    "--to-offset": "--to",
}
"""Flags of Kafka's tools and of sister commands, and what says the same here."""


def meant(flag: str, offered: Collection[str]) -> str:
    """The flag, one of those ``offered``, that may have been meant; empty: none is near."""
    words = OF_OTHER_TOOLS.get(flag, "")
    if words.startswith("`") or not set(words.split()).isdisjoint(offered):
        return words
    return next(iter(get_close_matches(flag, offered, n=1, cutoff=CLOSE_ENOUGH)), "")


class ListByDefault(TyperGroup):
    """``partiscope brokers --sort -skew`` is ``partiscope brokers list --sort -skew``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ctx.help_option_names
        if not ctx.resilient_parsing and not is_help and (not args or args[0][:1] == "-"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def with_flag(
    function: Function, name: str, annotation: Any, act: Callable[[Any, partial[Any]], Any]
) -> Function:
    """The function of a command with one flag more; ``act`` gets the flag's value (None: it was not
    given) and the call that would have been made without it."""
    own = signature(function)

    @wraps(function)
    def flagged(*args: Any, **flags: Any) -> Any:
        value = flags.pop(name, None)
        return act(value, partial(function, *args, **flags))

    offered = Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
    flagged.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[*own.parameters.values(), offered]
    )
    flagged.__annotations__ = {**function.__annotations__, name: annotation}
    return flagged
