"""``partiscope tokens``: which programs may use the API, as which role, until when."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from control.access.roles import EVERYWHERE
from control.model.moments import iso_text
from control.model.units import parse_duration
from control.views.format import duration_text
from control.views.tables.rows import Cell
from partiscope.access.tokens_file import TOKENS_MAX, Token, made, now_ms
from partiscope.cli.processes.role_flags import (
    OnCluster,
    RoleOption,
    checked_settings,
    role_documents,
    roles_text,
    write_roles,
)
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.grammar import ListByDefault
from partiscope.cli.shared.options import Data, Json, note, settings_with, write_json, write_lines
from partiscope.cli.shared.tables import words, write_table
from partiscope.settings import Settings

LASTS_MS_MIN: Final = 60_000
LASTS_MS_MAX: Final = 366 * 86_400_000
app = typer.Typer(
    cls=ListByDefault,
    help="List tokens of the API (what `partiscope tokens` alone does), add, describe, remove.",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the token; the journal has it.")]


@app.command("list", epilog="Example: partiscope tokens list --json")
def list_tokens(*, data: Data = None, as_json: Json = False) -> None:
    """Tokens, their roles, when each expires and was used last."""
    tokens = _settings(data).tokens.tokens()
    if as_json:
        write_json({"tokens": [_document(it) for it in tokens.values()]})
        return
    rows: list[list[str | Cell]] = [
        [it.name, roles_text(it.roles), _expiry(it), _time(it.used_ms)] for it in tokens.values()
    ]
    write_table([words(title) for title in ("token", "roles", "expires", "last use")], rows)


@app.command(epilog="Example: partiscope tokens describe nightly")
def describe(*, name: Name, data: Data = None, as_json: Json = False) -> None:
    """A token's times and roles, and what each role allows."""
    settings = _settings(data)
    token = _known(settings.tokens.tokens(), name)
    roles = role_documents(settings, token.roles)
    if as_json:
        write_json({**_document(token), "roles": roles})
        return
    times = f"made {_time(token.made_ms)}, expires {_expiry(token).text}"
    write_lines(f"{times}, last use {_time(token.used_ms)}")
    write_roles(roles)


@app.command(epilog="Example: partiscope tokens add nightly --role operator --expires 30d")
def add(
    *,
    name: Name,
    role: RoleOption = "viewer",
    cluster: OnCluster = EVERYWHERE,
    expires: Annotated[
        str, typer.Option(metavar="TIME", help="How long it holds: 1m to 366d.")
    ] = "90d",
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a token. It is shown once: keep it as a secret.

    A name that is there is refused: remove that token first.
    """
    settings = checked_settings(_settings(data), name, role, cluster)
    at_ms = now_ms()
    token, secret = made(name, {cluster: role}, lasts_ms=_lasts_ms(expires), at_ms=at_ms)
    with settings.tokens.changing() as tokens:
        if name in tokens:
            raise CommandError(
                f"there is a token {name!r} already; nothing was changed. Take another name, or "
                f"remove it: `partiscope tokens remove {name}`",
                Exit.WRONG_USE,
            )
        if len(tokens) >= TOKENS_MAX:
            raise CommandError(
                f"there are {TOKENS_MAX:,} tokens, as many as may be; nothing was changed. Remove "
                "those that have expired",
                Exit.REFUSED,
            )
        tokens[name] = token
    if as_json:
        write_json({**_document(token), "token": secret})
        return
    write_lines(secret)
    note(f"{name}: {roles_text(token.roles)}, until {iso_text(token.expires_ms)}; shown only now")


@app.command(epilog="Example: partiscope tokens remove nightly")
def remove(*, name: Name, data: Data = None, as_json: Json = False) -> None:
    """Remove a token; it lets nobody in from now on."""
    with _settings(data).tokens.changing() as tokens:
        del tokens[_known(tokens, name).name]
    if as_json:
        write_json({"name": name, "left": len(tokens)})
    else:
        note(f"{name} is removed; {len(tokens)} left")


def _settings(data: Data) -> Settings:
    """Tokens may be added before anything was started."""
    return settings_with(data=data, finds_installation=False)


def _lasts_ms(text: str) -> int:
    lasts_ms = parse_duration(text)
    if lasts_ms is None or not LASTS_MS_MIN <= lasts_ms <= LASTS_MS_MAX:
        raise CommandError(
            f"--expires {text!r} is no time from 1m to 366d, such as 90d", Exit.WRONG_USE
        )
    return int(lasts_ms)


def _known(tokens: Mapping[str, Token], name: str) -> Token:
    if name not in tokens:
        raise CommandError(
            f"there is no token {name!r}; there are {', '.join(tokens) or 'none'}", Exit.WRONG_USE
        )
    return tokens[name]


def _document(token: Token) -> dict[str, Any]:
    return {
        "name": token.name,
        "roles": dict(token.roles),
        "made": iso_text(token.made_ms),
        "expires": iso_text(token.expires_ms),
        "is_expired": now_ms() >= token.expires_ms,
        "last_use": None if token.used_ms is None else iso_text(token.used_ms),
    }


def _time(at_ms: int | None) -> str:
    return "never" if at_ms is None else iso_text(at_ms)


def _expiry(token: Token) -> Cell:
    left_ms = token.expires_ms - now_ms()
    when = "expired" if left_ms <= 0 else f"in {duration_text(left_ms)}"
    return Cell(told := iso_text(token.expires_ms), f"{told} ({when})")
