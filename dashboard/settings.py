"""Settings that the page needs to start."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

from control.access.login import Tokens
from control.exposition.limits import USUAL, Limits
from control.model.watched_cluster import WatchedCluster, address_text
from control.views.tour import Offer
from dashboard.server.login.login_check import LoginSettings
from dashboard.server.tls import CertificateFiles

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "::1")


class UnguardedError(Exception):
    """The page would be there for everybody, and nobody would have to log in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSettings:
    """Where to listen, and what to show."""

    store: str
    """Folder or URL of the metrics store."""
    clusters: Sequence[WatchedCluster] = (WatchedCluster(),)
    """What is watched; the first is shown to who names none."""
    bus: str | None = None
    """``host:port,…`` of the cluster that carries operations; None: none is known."""
    tour: Offer = Offer.NONE
    host: str = "127.0.0.1"
    port: int = 8050
    """0 takes a free port."""
    allowed_hosts: Sequence[str] = field(default=())
    """Further names under which the page may be reached, with port, e.g. ``ops.example:443``."""

    certificate: CertificateFiles | None = None
    """For TLS; None: the page speaks plain HTTP."""
    limits: Limits = USUAL
    """Of what ``/metrics`` exposes."""
    logins: LoginSettings | None = None
    """Who may log in; None: nobody has to."""
    tokens: Tokens | None = None
    """Which programs may use the API; None: there is no API."""

    def require_guarded(self) -> None:
        """Without logins the page listens on loopback alone.

        :raises UnguardedError: it would listen elsewhere.
        """
        if self.logins is None and not _is_loopback(self.host):
            raise UnguardedError(
                f"the page does not listen on {self.host}, because nobody would have to log in "
                "there. Add a user (`partiscope users add NAME --role admin`), or leave --host out"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the clusters, if there are several."""
        return tuple(each.name for each in self.clusters) if len(self.clusters) > 1 else ()

    def hosts(self, port: int) -> frozenset[str]:
        """The values of the Host header that are answered."""
        names = {*LOOPBACK_NAMES, self.host}
        return frozenset({*(address_text(name, port) for name in names), *self.allowed_hosts})

    def url(self, port: int) -> str:
        """Where it answers, listening on ``port``."""
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://{address_text(self.host, port)}"


def _is_loopback(host: str) -> bool:
    try:
        return host in LOOPBACK_NAMES or ip_address(host).is_loopback
    except ValueError:
        return False
