"""View paths and their queries, the same in the page's address and in the terminal.

``topics/orders/partitions/7?q=lag>10000&sort=-lag`` is a path; in the browser it stands after
the first slash, on the command line it is the argument of ``partiscope tui``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

PATH_CHARACTERS_MAX: Final = 2_000
DEFAULT_VIEW: Final = "overview"

_SHAPES: Final[Mapping[str, tuple[str, ...]]] = {
    # View -> the path's segments; names in braces are parameters.
    "overview": ("overview",),
    "findings": ("findings",),
    "alerts": ("alerts",),
    "brokers": ("brokers",),
    "broker": ("brokers", "{broker}"),
    "broker_configs": ("brokers", "{broker}", "configs"),
    "topics": ("topics",),
    "topic": ("topics", "{topic}"),
    "topic_configs": ("topics", "{topic}", "configs"),
    "partition": ("topics", "{topic}", "partitions", "{partition}"),
    "segments": ("topics", "{topic}", "partitions", "{partition}", "segments"),
    "partitions": ("partitions",),
    "groups": ("groups",),
    "group": ("groups", "{group}"),
    "map": ("map",),
    "plan": ("plan",),
    "check": ("check",),
    "moves": ("moves",),
    "move": ("moves", "{move}"),
    "move_report": ("moves", "{move}", "report"),
    "produce_any": ("produce",),
    "produce": ("produce", "{topic}"),
    "browse": ("browse", "{topic}"),
    "what-if": ("what-if",),
    "journal": ("journal",),
    "clusters": ("clusters",),
    "job": ("job",),
}
VIEWS: Final = tuple(_SHAPES)
_INTEGERS: Final = frozenset({"broker", "partition"})


class PathError(ValueError):
    """Not a view path; its text says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPath:
    """A view with its parameters (``topic``, ``partition`` …) and query (``q``, ``sort`` …)."""

    view: str = DEFAULT_VIEW
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return print_path(self)


def parse_path(text: str) -> ViewPath:
    """Inverse of ``print_path``; an empty path is the overview, a leading slash is ignored.

    Raises:
        PathError: no such view, or a broker or partition that is not a number.
    """
    if len(text) > PATH_CHARACTERS_MAX:
        raise PathError(f"longer than {PATH_CHARACTERS_MAX} characters")
    path, _, query = text.partition("?")
    parts = [unquote(part) for part in path.strip("/").split("/") if part]
    for view, shape in _SHAPES.items():
        params = _match(shape, parts or [DEFAULT_VIEW])
        if params is not None:
            return ViewPath(view=view, params=params, query=dict(parse_qsl(query)))
    raise PathError(f"there is no view {path.strip('/')!r}")


def print_path(path: ViewPath) -> str:
    """Without a leading slash; names are percent-encoded where they must be."""
    parts = [
        quote(path.params[part.strip("{}")], safe="") if part.startswith("{") else part
        for part in _SHAPES[path.view]
    ]
    known = {key: value for key, value in path.query.items() if value}
    query = urlencode(known, quote_via=quote, safe=":,>=<*") if known else ""
    return "/".join(parts) + (f"?{query}" if query else "")


def _match(shape: tuple[str, ...], parts: list[str]) -> dict[str, str] | None:
    if len(shape) != len(parts):
        return None
    params: dict[str, str] = {}
    for wanted, part in zip(shape, parts, strict=True):
        if wanted.startswith("{"):
            name = wanted.strip("{}")
            if name in _INTEGERS and not part.isdecimal():
                raise PathError(f"{part!r} is not the number of a {name}")
            params[name] = part
        elif wanted != part:
            return None
    return params
