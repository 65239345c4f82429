"""Clusters that one installation watches: how they are told apart, and what is dangerous. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

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


def is_of_any(address: str, clusters: Collection[str]) -> bool:
    """Whether ``host:port,…`` has one in common with any of these."""
    these = set(address.split(","))
    return any(not these.isdisjoint(other.split(",")) for other in clusters)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCluster:
    """One cluster as screens and commands know it."""

    name: str = ""
    """As paths and ``--cluster`` have it: its name in the settings, else its address; empty where
    there is only one, which nobody named."""
    bootstrap: str | None = None
    """``host:port,…``; None: nothing can be changed or produced."""
    cluster_id: ClusterId | None = None
    """Of its figures in the store; None: the largest one there."""
    color: str = ""
    """One of ``COLORS``; empty: none, or red where it is production."""
    is_production: bool = False
    is_read_only: bool = False

    @property
    def hex_color(self) -> str | None:
        """Its colour as screens take it; None: it has none."""
        name = self.color or (PRODUCTION_COLOR if self.is_production else "")
        return COLORS.get(name)

    @property
    def flags(self) -> tuple[str, ...]:
        """What nobody may overlook, in words."""
        production = (PRODUCTION,) if self.is_production else ()
        return (*production, "read-only") if self.is_read_only else production

    def word_to_type(self, thing: str = "") -> str:
        """What must be typed before a change: the name of what is destroyed, on a production
        cluster led by the cluster's own; empty: nothing."""
        if not self.is_production:
            return thing
        return f"{self.name}/{thing}" if thing else self.name
