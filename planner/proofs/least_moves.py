"""The least that any plan must move to the balance that one has reached: bytes, and replicas.

A quick proof first (proofs.lower_bound); where it leaves a question, the dearer one
(proofs.priced_bound).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.columns import Columns, Floats, Numbers, rack_numbers
from planner.figures import Balance, BrokerLoad
from planner.goals import Goal, PlanRequest
from planner.proofs.demand import Demand
from planner.proofs.lower_bound import (
    added_bytes,
    added_replicas,
    lower_bound_bytes,
    lower_bound_replicas,
)
from planner.proofs.priced_bound import priced_bytes, priced_replicas
from planner.proposal import Proposal
from planner.roles import roles_of
from planner.search.placement import movable_partitions
from planner.search.shares import Reached, rack_shares
from planner.search.topic_spread import counts_for
from planner.topology import Topology
from planner.verify import Violation

_CLEAR: Final = 1.01
"""A plan so near to the quick bound needs no better one."""
_REPLICAS_PRICED_MAX: Final = 20_000
"""Replicas of a cluster: plans are made to move few bytes, so the second proof for numbers is
not worth its time on larger ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """None where nothing is proven."""

    bytes: int | None
    replicas: int | None


class Prover:
    """For the plans of one request."""

    def __init__(
        self,
        topology: Topology,
        request: PlanRequest,
        columns: Columns,
        relief: Floats | None = None,
    ) -> None:
        """`relief`: bytes that relieved brokers are to come down to, one element a broker."""
        self._topology, self._request, self._columns = topology, request, columns
        self._relief = relief
        self._roles = roles_of(topology, request)

    def least(
        self,
        proposal: Proposal,
        reached: Balance,
        after: Sequence[BrokerLoad],
        violations: Sequence[Violation],
    ) -> Least:
        """For the balance over all brokers that a proposal has reached; rules that it breaks are
        not asked. Traffic counts where the goal is about it."""
        if any(violation.rule == "replicas" for violation in violations):
            return Least(bytes=None, replicas=None)
        if any(len(change.before) != len(change.after) for change in proposal.changes):
            return self._added()
        demand = self._demand(reached, after, violations)
        if self._request.goal is not Goal.TRAFFIC:
            demand = replace(demand, most_in=None)
        of_bytes, of_replicas = _bytes(demand, proposal), lower_bound_replicas(demand)
        is_small = len(self._columns.of) <= _REPLICAS_PRICED_MAX
        if is_small and proposal.moved_replicas > _CLEAR * of_replicas:
            of_replicas = max(of_replicas, priced_replicas(demand, proposal.moved_replicas))
        return Least(bytes=of_bytes, replicas=of_replicas)

    def least_by_share(
        self,
        proposal: Proposal,
        reached: Balance,
        after: Sequence[BrokerLoad],
        violations: Sequence[Violation],
    ) -> int:
        """The fewest bytes to a balance that is as even among brokers of each share for itself,
        and in traffic. The search is for that one: what racks force upon some says nothing about
        the others."""
        demand = self._demand(reached, after, violations)
        of_all, of_shares = demand.reached, self._relieved(self._by_share(after), after)
        is_same = all(
            np.array_equal(ours[~demand.removed], theirs[~demand.removed])
            for ours, theirs in (
                (of_all.count_min, of_shares.count_min),
                (of_all.count_max, of_shares.count_max),
                (of_all.bytes_max, of_shares.bytes_max),
            )
        )
        if is_same:  # prices do not see traffic, and prove what `least` has told
            return lower_bound_bytes(demand)
        return _bytes(replace(demand, reached=of_shares), proposal)

    def _added(self) -> Least:
        factor = self._request.replication_factor
        if factor is None or not self._request.is_everything:
            return Least(bytes=None, replicas=None)
        return Least(
            bytes=added_bytes(self._columns, factor),
            replicas=added_replicas(self._columns, factor),
        )

    def _demand(
        self, reached: Balance, after: Sequence[BrokerLoad], violations: Sequence[Violation]
    ) -> Demand:
        topology, request, columns = self._topology, self._request, self._columns
        scope = movable_partitions(topology, request)
        left, staying = (
            [str(p.key) in where for p in topology.partitions] if where else False
            for where in (
                {violation.where for violation in violations},
                {violation.where for violation in violations if violation.rule == "removed"},
            )
        )
        removed = np.isin(topology.broker_ids, request.remove_brokers)
        return Demand(
            columns=columns,
            rack=rack_numbers(topology, removed),
            removed=removed,
            reached=self._relieved(Reached.by_all(reached, columns.brokers), after),
            scope=scope,
            leaves=scope & ~np.asarray(staying),
            mended=scope & ~np.asarray(left),
            most_in=None if reached.bytes_in is None else reached.bytes_in.max,
            topics=counts_for(topology, request, columns) if reached.topics_uneven == 0 else None,
        )

    @property
    def asks_more(self) -> bool:
        """Whether the search is for more than the balance over all brokers."""
        return self._has_shares or self._columns.has_traffic

    @property
    def _has_shares(self) -> bool:
        """Whether racks may leave brokers different shares."""
        return 1 < self._roles.racks == self._roles.known_racks

    def _by_share(self, after: Sequence[BrokerLoad]) -> Reached:
        roles, columns = self._roles, self._columns
        kept, width = ~roles.removed, columns.width
        share = np.zeros(columns.brokers)
        if self._has_shares:
            brokers = [
                np.bincount(roles.rack[chosen], minlength=roles.racks)[: roles.racks]
                for chosen in (kept, roles.target)
            ]
            ones, total = np.ones(len(width)), float(width.sum())
            share[kept] = rack_shares(total, width, ones, *brokers)[roles.rack[kept]]
        return Reached.by_share(*_figures(after), kept, share)

    def _relieved(self, reached: Reached, after: Sequence[BrokerLoad]) -> Reached:
        """The same balance, with bytes of their own for brokers to be relieved."""
        if self._relief is None:
            return reached
        relieved = np.isin(self._topology.broker_ids, self._request.relieve_brokers)
        own = np.maximum(_figures(after)[1], self._relief.astype(np.int64))
        is_own = relieved & ~self._roles.removed
        return replace(reached, bytes_max=np.where(is_own, own, reached.bytes_max))


def _bytes(demand: Demand, proposal: Proposal) -> int:
    least = lower_bound_bytes(demand)
    if proposal.moved_bytes > _CLEAR * least:
        least = max(least, priced_bytes(demand, proposal.moved_bytes))
    return least


def _figures(loads: Sequence[BrokerLoad]) -> tuple[Numbers, Numbers]:
    """Replicas and bytes by broker."""
    count = np.array([load.replicas for load in loads], dtype=np.int64)
    return count, np.array([load.bytes for load in loads], dtype=np.int64)
