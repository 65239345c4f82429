"""Which commands the executor takes: the installation's settings judge them here once more, since
anybody who may write to the bus can leave out what page and command line ask for."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from control.model.watched_cluster import Site, WatchedCluster
from control.move.commands import (
    ACT_AHEAD_MAX_MS,
    ControlAction,
    ControlCommand,
    ReassignCommand,
)
from control.move.state import OperationState
from control.operations.errors import NotConfiguredError, ReadOnlyError
from control.operations.permission import check_writable

NEEDS_NAME = frozenset({ControlAction.RESUME, ControlAction.THROTTLE})
"""Acts that put load on a cluster; the others only take it off."""

NO_PROOF: Final = (
    "carries no proof of an installation that the executor knows; send it with the data directory "
    "of its `up` (--data), or name the sender's key file in proof.further_key_files of the "
    "executor's settings"
)
FAR_AHEAD: Final = (
    "its time lies more than a day ahead of the executor's clock; set both clocks, and ask again"
)


class Admission:
    """Judges commands; it connects to configured addresses alone."""

    def __init__(
        self, cluster_of: Callable[[Site], WatchedCluster], *, requires_proof: bool = True
    ) -> None:
        """``cluster_of`` raises NotConfiguredError, and may take seconds."""
        self._cluster_of = cluster_of
        self._requires_proof = requires_proof
        self._known: dict[Site, WatchedCluster] = {}

    async def refusal(self, command: ReassignCommand, state: OperationState | None = None) -> str:
        """Why a reassignment may not be carried out; empty: it may. ``state`` is that by the events
        of earlier executors."""
        if self._requires_proof and command.is_foreign:
            return f"the command {NO_PROOF}"
        if self._requires_proof and state is not None and state.is_foreign:
            return f"what is told of it {NO_PROOF}"
        try:
            known = await self._cluster(command.site)
            check_writable(known, "the move")
        except NotConfiguredError as error:
            return f"{error.reason}; {error.next_step}"
        except ReadOnlyError:
            return "the executor's settings say read_only of this cluster"
        return _unconfirmed(known, command.confirmed)

    async def control_refusal(self, command: ControlCommand, of: ReassignCommand | None) -> str:
        """Why an act on a reassignment is not done; empty: it is. ``of`` None: its command has not
        come yet."""
        if self._requires_proof and command.is_foreign:
            return f"the command {NO_PROOF}"
        if command.submitted_ms > time.time() * 1000 + ACT_AHEAD_MAX_MS:
            return FAR_AHEAD  # Taken, it would put every later act behind such a time.
        if of is None or command.action not in NEEDS_NAME:
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
