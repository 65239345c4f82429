"""Grammar of command groups: create, alter, delete, describe, and list by default."""

from typing import Any

from typer.core import TyperGroup


class ListByDefault(TyperGroup):
    """``partiscope brokers --sort -skew`` is ``partiscope brokers list --sort -skew``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ctx.help_option_names
        if not ctx.resilient_parsing and not is_help and (not args or args[0][:1] == "-"):
            args = ["list", *args]
        return super().parse_args(ctx, args)
