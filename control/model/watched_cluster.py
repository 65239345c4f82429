"""Clusters that one installation watches: how they are told apart, and what is dangerous. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from broker.host_name import address_text as address_text
from control.model.ids import ClusterId

COLORS: Final[Mapping[str, str]] = {
    "red": "#e03131",
    "orange": "#e8590c",
    "yellow": "#f08c00",
    "green": "#2f9e44",
    "teal": "#099268",
    "blue": "#1971c2",
    "violet": "#6741d9",
    "pink": "#c2255c",
    "gray": "#868e96",
}
"""Names that settings use; each is dark enough for white words on it."""
PRODUCTION_COLOR: Final = "red"
PRODUCTION: Final = "PRODUCTION"
JOURNAL_HOLD_S: Final = 5.0
"""How long a change waits for the journal unless the settings say otherwise, in seconds."""
_LOCALHOST: Final = re.compile(r"^localhost:")


def addresses_of(text: str) -> frozenset[str]:
    """Each ``host:port`` of ``host:port,…``, written so that equal ones are equal."""
    parts = (part.strip().lower() for part in text.split(","))
    return frozenset(_LOCALHOST.sub("127.0.0.1:", part) for part in parts if part)


def is_of_any(address: str, clusters: Collection[str]) -> bool:
    """Whether ``host:port,…`` has one in common with any of these."""
    these = addresses_of(address)
    return any(not these.isdisjoint(addresses_of(other)) for other in clusters)


class Site(NamedTuple):
    """A cluster as records on the bus name it."""

    bootstrap: str
    cluster_id: str = ""
    """Empty: of an older release, or of who did not know it."""

    def is_same(self, other: Site) -> bool:
        """By the id where both are known, else by an address in common."""
        if self.cluster_id and other.cluster_id:
            return self.cluster_id == other.cluster_id
        return is_of_any(self.bootstrap, [other.bootstrap])


NOWHERE: Final = Site("")
"""In lines of older releases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCluster:
    """One cluster as screens and commands know it."""

    name: str = ""
    """As paths and ``--cluster`` have it: its name in the settings, else its address; empty where
    there is only one, which nobody named."""
    bootstrap: str | None = None
    """``host:port,…``; None: nothing can be changed or produced."""
    cluster_id: ClusterId | None = None
    """Its figures, operations and moves are found by it. None: the largest one in the store, where
    only a store is known."""
    color: str = ""
    """One of ``COLORS``; empty: none, or red where it is production."""
    is_production: bool = False
    is_read_only: bool = False
    is_collected: bool = False
    """A collector reads it, and reports on the bus; the bundled brokers report themselves."""
    journal_hold_s: float = JOURNAL_HOLD_S
    """How long a change waits for the journal before it is refused; infinite: until it can be
    written."""
    outages: str = ""
    """Socket of the supervisor that stops a broker for a lesson; empty: it is none of ours."""
    unwatched: str = ""
    """Why nobody brings its figures, and what would; empty: somebody does."""

    @property
    def hex_color(self) -> str | None:
        """Its colour as screens take it; None: it has none."""
        name = self.color or (PRODUCTION_COLOR if self.is_production else "")
        return COLORS.get(name)

    @property
    def flags(self) -> tuple[str, ...]:
        """Marks of a cluster that nobody may overlook, in words."""
        production = (PRODUCTION,) if self.is_production else ()
        return (*production, "read-only") if self.is_read_only else production

    @property
    def site(self) -> Site:
        """As records on the bus name it."""
        return Site(self.bootstrap or "", self.cluster_id or "")

    def owns(self, site: Site) -> bool:
        """Whether what a record on the bus names is this cluster; what names none may be."""
        return site == NOWHERE or self.site.is_same(site)

    def word_to_type(self, thing: str = "") -> str:
        """Word to type before a change: the name of what is destroyed, on a production cluster led
        by the cluster's own; empty: none."""
        if not self.is_production:
            return thing
        return f"{self.name}/{thing}" if thing else self.name
