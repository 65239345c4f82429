"""What the page needs to be told to start."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from control.model.ids import ClusterId

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSettings:
    """Where to listen, and what to show."""

    store: str
    """Folder or URL of the metrics store."""
    cluster_id: ClusterId | None = None
    """Of the cluster whose figures are shown; None: the largest one in the store."""
    bootstrap: str | None = None
    """``host:port,…`` of the watched cluster; None: nothing can be changed or produced."""
    bus: str | None = None
    """``host:port,…`` of the cluster that carries operations; default: ``bootstrap``."""
    host: str = "127.0.0.1"
    port: int = 8050
    """0 takes a free port."""
    is_read_only: bool = False
    allowed_hosts: Sequence[str] = field(default=())
    """Further names under which the page may be reached, with port, e.g. ``ops.example:443``."""

    def hosts(self, port: int) -> frozenset[str]:
        """The values of the Host header that are answered."""
        names = {*LOOPBACK_NAMES, self.host}
        return frozenset({*(f"{name}:{port}" for name in names), *self.allowed_hosts})
