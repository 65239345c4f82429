"""Which commands the executor takes: the installation's settings judge them here once more, since
anybody who may write to the bus can leave out what page and command line ask for."""

import asyncio
from collections.abc import Callable

from control.model.watched_cluster import Site, WatchedCluster
from control.operations.bus.commands import ControlAction, ControlCommand, ReassignCommand
from control.operations.errors import NotConfiguredError, ReadOnlyError
from control.operations.permission import check_writable

NEEDS_NAME = frozenset({ControlAction.RESUME, ControlAction.THROTTLE})
"""Acts that put load on a cluster; the others only take it off."""


class Admission:
    """Judges commands; it connects to configured addresses alone."""

    def __init__(self, cluster_of: Callable[[Site], WatchedCluster]) -> None:
        """``cluster_of`` raises NotConfiguredError, and may take seconds."""
        self._cluster_of = cluster_of
        self._known: dict[Site, WatchedCluster] = {}

    async def refusal(self, command: ReassignCommand) -> str:
        """Why a reassignment may not be carried out; empty: it may."""
        try:
            known = await self._cluster(command.site)
            check_writable(known, "the move")
        except NotConfiguredError as error:
            return f"{error.reason}; {error.next_step}"
        except ReadOnlyError:
            return "the executor's settings say read_only of this cluster"
        return _unconfirmed(known, command.confirmed)

    async def control_refusal(self, command: ControlCommand, of: ReassignCommand) -> str:
        """Why an act on a reassignment is not done; empty: it is."""
        if command.action not in NEEDS_NAME:
            return ""
        try:
            return _unconfirmed(await self._cluster(of.site), command.confirmed)
        except NotConfiguredError as error:
            return error.reason

    def reached(self, site: Site) -> Site:
        """Where the cluster of a command is reached: at its configured addresses."""
        known = self._known.get(site, WatchedCluster()).site
        return Site(known.bootstrap or site.bootstrap, site.cluster_id or known.cluster_id)

    async def _cluster(self, site: Site) -> WatchedCluster:
        if site not in self._known:
            # In a thread: clusters may have to be asked who they are.
            self._known[site] = await asyncio.to_thread(self._cluster_of, site)
        return self._known[site]


def _unconfirmed(known: WatchedCluster, confirmed: str) -> str:
    """A refusal, unless the command carries the cluster's name (and what it destroys behind it)."""
    word = known.word_to_type()
    if not word or confirmed == word or confirmed.startswith(f"{word}/"):
        return ""
    return (
        f"{word} is a production cluster, and the command does not carry its name; "
        f"confirm it on page or terminal, or name --cluster {word}"
    )
