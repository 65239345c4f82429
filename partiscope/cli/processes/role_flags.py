"""Flags of a role and its cluster, and what a role allows: for users and for tokens."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from control.access.roles import EVERYWHERE
from partiscope.access.access_settings import roles_of
from partiscope.access.private_file import NAME
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.tables import words, write_table
from partiscope.settings import Settings

OnCluster = Annotated[
    str,
    typer.Option(
        "--on", metavar="CLUSTER", help="Only on this cluster, by its name in the settings."
    ),
]
RoleOption = Annotated[
    str, typer.Option(metavar="ROLE", help="viewer, operator, admin, or one of [roles].")
]


def checked_settings(settings: Settings, name: str, role: str, cluster: str) -> Settings:
    """The same settings, once they know the role and the cluster.

    Raises:
        CommandError: status 2; a name that cannot be, or an unknown role.
        SettingsError: an unknown cluster.
    """
    if not NAME.fullmatch(name):
        raise CommandError(
            f"{name!r} is no name here: write up to 100 of A-Z a-z 0-9 . _ @ + -", Exit.WRONG_USE
        )
    known = roles_of(settings.roles)
    if role not in known:
        raise CommandError(
            f"there is no role {role!r}; there are {', '.join(sorted(known))}. Declare it as "
            f"[roles.{role}] in the settings",
            Exit.WRONG_USE,
        )
    if cluster != EVERYWHERE:
        settings.cluster_at(cluster)
    return settings


def role_documents(settings: Settings, roles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Roles by cluster, and what each of them allows."""
    known = roles_of(settings.roles)
    return [
        {
            "cluster": where,
            "role": role,
            "operations": sorted(known[role].operations) if role in known else [],
            "topics": list(known[role].topics) if role in known else [],
            "reads_records": role in known and known[role].may_read_records,
            "sees_unmasked": role in known and known[role].sees_unmasked,
        }
        for where, role in roles.items()
    ]


def write_roles(roles: list[dict[str, Any]]) -> None:
    """The same, for people."""
    titles = ("cluster", "role", "operations", "topics", "reads records")
    rows = [
        [
            "all" if it["cluster"] == EVERYWHERE else it["cluster"],
            it["role"],
            ", ".join(it["operations"]) or "none",
            ", ".join(it["topics"]),
            "yes" if it["reads_records"] else "no",
        ]
        for it in roles
    ]
    write_table([words(title) for title in titles], rows)


def roles_text(roles: Mapping[str, str]) -> str:
    """``operator, viewer on prod``."""
    return ", ".join(
        role if where == EVERYWHERE else f"{role} on {where}" for where, role in roles.items()
    )
