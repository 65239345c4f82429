"""``partiscope users``: who may log in to the page, and what each may do."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from getpass import getpass
from typing import Annotated

import typer

from control.access.roles import EVERYWHERE
from partiscope.access.users_file import User, hashed
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
from partiscope.cli.shared.options import Data, Json, note, settings_with, write_json
from partiscope.cli.shared.streams import is_piped
from partiscope.cli.shared.tables import words, write_table
from partiscope.settings import Settings

app = typer.Typer(
    cls=ListByDefault,
    help="List users of the page (what `partiscope users` alone does), add, remove, give roles.",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the user.")]
RoleName = Annotated[
    str, typer.Argument(metavar="ROLE", help="viewer, operator, admin, or one of [roles].")
]


@app.command("list", epilog="Example: partiscope users list --json")
def list_users(*, data: Data = None, as_json: Json = False) -> None:
    """Users, how they log in, and their roles."""
    users = _settings(data).users_file.users()
    if as_json:
        told = [{"name": it.name, "password": bool(it.password), "roles": dict(it.roles)}
                for it in users.values()]  # fmt: skip
        write_json({"users": told})
        return
    rows = [
        [it.name, "password" if it.password else "proxy or OS user", roles_text(it.roles)]
        for it in users.values()
    ]
    write_table([words(title) for title in ("user", "logs in by", "roles")], rows)


@app.command(epilog="Example: partiscope users describe alice")
def describe(*, name: Name, data: Data = None, as_json: Json = False) -> None:
    """A user's roles, and what each of them allows."""
    settings = _settings(data)
    user = _known(settings.users_file.users(), name)
    roles = role_documents(settings, user.roles)
    if as_json:
        write_json({"name": user.name, "password": bool(user.password), "roles": roles})
    else:
        write_roles(roles)


@app.command(epilog="Example: partiscope users add alice --role operator")
def add(
    *,
    name: Name,
    role: RoleOption = "viewer",
    cluster: OnCluster = EVERYWHERE,
    password: Annotated[
        bool, typer.Option(help="Ask for a password; without, the user comes by a proxy or SSH.")
    ] = True,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Add a user, or give one a new password; its sessions end.

    The password is typed, or the first line of standard input. A running page asks for logins
    only from its next start on, where this is the first user.
    """
    settings = checked_settings(_settings(data), name, role, cluster)
    secret = hashed(_password(name)) if password else ""
    with settings.users_file.changing() as users:
        is_first = not users
        known = users.get(name, User(name=name))
        roles = {**known.roles, cluster: role}
        users[name] = replace(known, password=secret, roles=roles)
    _told(f"{name} may log in: {roles_text(roles)}", users[name], as_json=as_json)
    if is_first:
        note("the page asks for logins once it is started again (`partiscope up` or `dashboard`)")


@app.command(epilog="Example: partiscope users role alice viewer --on prod")
def role(
    *,
    name: Name,
    role: RoleName,
    cluster: OnCluster = EVERYWHERE,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Give a user another role; sessions that it had end."""
    settings = checked_settings(_settings(data), name, role, cluster)
    with settings.users_file.changing() as users:
        known = _known(users, name)
        users[name] = replace(known, roles={**known.roles, cluster: role})
    _told(f"{name}: {roles_text(users[name].roles)}", users[name], as_json=as_json)


@app.command(epilog="Example: partiscope users remove alice")
def remove(*, name: Name, data: Data = None, as_json: Json = False) -> None:
    """Remove a user; its sessions end at once."""
    with _settings(data).users_file.changing() as users:
        del users[_known(users, name).name]
    if as_json:
        write_json({"name": name, "left": len(users)})
    else:
        note(f"{name} is removed; {len(users)} left")


def _told(line: str, user: User, *, as_json: bool) -> None:
    if as_json:
        write_json({"name": user.name, "roles": dict(user.roles)})
    else:
        note(line)


def _settings(data: Data) -> Settings:
    """Users may be added before anything was started."""
    return settings_with(data=data, finds_installation=False)


def _known(users: Mapping[str, User], name: str) -> User:
    if name not in users:
        raise CommandError(
            f"there is no user {name!r}; there are {', '.join(users) or 'none'}", Exit.WRONG_USE
        )
    return users[name]


def _password(name: str) -> str:
    if is_piped():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass(f"Password for {name}: ")
    if getpass("The same again: ") != first:
        raise CommandError("the two passwords differ; nothing was changed", Exit.WRONG_USE)
    return first
