"""plan(): from a topology and a request to judged alternatives. Pure and deterministic."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from control.model.ids import TopicPartition
from control.model.units import bytes_text
from planner.columns import Columns, Floats, columns_of
from planner.disks.stages import stages_words
from planner.disks.wholly import Asked, broken_anew, stuck_of
from planner.figures import (
    Balance,
    BrokerLoad,
    balance_among,
    loads_after,
    loads_of,
    traffic_among,
)
from planner.goals import INTERNAL, Goal, ImpossibleError, PlanRequest, Tolerance
from planner.immovable import immovable
from planner.proofs.feasibility import NAMES_MAX, check_request
from planner.proofs.least_moves import Prover
from planner.proofs.limits import (
    assumed,
    cordoned_brokers,
    hidden_brokers,
    leaderless,
    left_broken,
    partly_in_sync,
    proofs,
    reassigning,
    stopped_brokers,
    unknown_figures,
    unknown_racks,
    unknown_sync,
)
from planner.proposal import Proposal, proposal_of
from planner.search.anneal import anneal
from planner.search.bounds import Bounds, bounds_of, relief_bounds
from planner.search.even import even_out
from planner.search.leaders import even_leaders, leader_bounds
from planner.search.placement import (
    Placement,
    followers_in_order,
    in_order,
    keep_orders,
)
from planner.search.repair import Mender, leave_what_cannot_be
from planner.search.share_overflow import level
from planner.search.spare_moves import economize
from planner.search.topic_leaders import even_topic_leaders
from planner.search.topic_spread import counts_for, spread_topics
from planner.search.traffic import even_arriving, even_leaving, overload
from planner.search.undo_and_settle import rethink
from planner.search.unrest import Unrest, unrest_of
from planner.topology import Topology
from planner.verify import Violation, verify_proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A judged proposal. The lower bounds are proven for the balance that it reaches; None where
    nothing is."""

    proposal: Proposal
    balance: Balance
    violations: tuple[Violation, ...]
    lower_bound_bytes: int | None
    lower_bound_replicas: int | None

    @property
    def name(self) -> str:
        """The proposal's name."""
        return self.proposal.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Alternatives for one topology, the recommended first, and the balance now. `limits` say
    what no plan can reach, and why."""

    before: Topology
    request: PlanRequest
    balance_before: Balance
    alternatives: tuple[Alternative, ...]
    limits: tuple[str, ...] = ()


def plan(topology: Topology, request: PlanRequest) -> Plan:
    """Plan every alternative of the request's goal.

    Removed brokers named in the topology count as removed in the request. Immovable
    partitions are kept as they are.

    :raises GoalError: the request makes no sense for this topology. ImpossibleError: no plan
        fulfils it wholly.
    """
    removed = tuple(dict.fromkeys((*request.remove_brokers, *topology.remove_brokers)))
    request = replace(request, remove_brokers=removed)
    if any(p.topic.startswith(INTERNAL) for p in topology.partitions):
        request = request.without_internal()
    stuck = immovable(topology, request)
    check_request(topology, request, stuck)
    kept = sorted(map(str, stuck))
    request = replace(request, keep_partitions=(*request.keep_partitions, *kept))
    columns = columns_of(topology)
    loads = loads_of(topology, columns)
    placement = Placement(topology, request, columns)
    relief = _relief(placement).bytes_max if request.goal is Goal.RELIEVE else None
    judging = _Judge(topology, request, columns, loads, relief)
    asked = Asked(placement)
    proposals: list[Proposal] = []
    alternatives: dict[Tolerance, Alternative] = {}
    for tolerance in request.tolerances():
        proposal = _propose(asked, request, tolerance)
        if all(proposal.changes != known.changes for known in proposals):
            proposals.append(proposal)
            found = judging.judge(proposal)

            def made(way: _Way, tolerance: Tolerance = tolerance) -> Alternative | None:
                other = _propose(asked, request, tolerance, way)
                return judging.judge(other) if other.changes else None

            alternatives[tolerance] = _made_again(found, made, judging)
    sound = _sound(alternatives, asked, judging)
    offered = tuple(worth_offering(sound, request.relieve_brokers))
    return Plan(
        before=topology,
        request=request,
        balance_before=judging.detailed(balance_among(loads), Proposal(name="now")),
        alternatives=offered,
        limits=(
            *leaderless(topology),
            *reassigning(topology),
            *unknown_figures(topology, request.goal),
            *unknown_sync(topology, (c for made in offered for c in made.proposal.changes)),
            *stopped_brokers(topology, request),
            *hidden_brokers(topology),
            *cordoned_brokers(topology, removed),
            *partly_in_sync(topology, request),
            *unknown_racks(topology, removed),
            *_still_above(placement, relief, offered[0].proposal),
            *filter(None, (stages_words(made.name, made.proposal.changes) for made in offered)),
            *(asked.told[made.proposal] for made in offered if made.proposal in asked.told),
            *left_broken(request.goal, offered[0].violations),
            *assumed(request, offered[0].proposal),
            *(() if request.goal in _KEEPS_DATA else proofs(placement, offered[0].violations)),
        ),
    )


_FAR: Final = 1.04
"""A plan so far above its bound is made once more in another way, and by chance, until it is no
longer."""
_AGAIN_MAX: Final = 100_000
"""Replicas."""
_BY_CHANCE_MAX: Final = 20_000
"""Replicas: larger clusters have one to match every gap."""
_CALMER: Final = 0.1
"""Of the mean: so much overload less is worth leaving numbers as they are."""
_KEEPS_DATA: Final = frozenset({Goal.LEADERS, Goal.RACKS, Goal.RELIEVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How a plan is made: whether bytes go in small replicas (search.even); whether chance
    is tried until no more than `enough` bytes move, or it is tired."""

    gives_small: bool = False
    enough: int | None = None


_FIRST: Final = _Way()
_STEPS_MAX: Final = 20
_Targets = Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """Proposal of one search, empty where it betters nothing. `is_last`: nothing is left to do.
    `told`: what disks have no room for."""

    proposal: Proposal
    is_last: bool = True
    told: str = ""


def _made_again(
    found: Alternative, made: Callable[[_Way], Alternative | None], judging: "_Judge"
) -> Alternative:
    """The best of what other ways make, where it is far above its bound."""
    if judging.replicas > _AGAIN_MAX or _is_near(found, judging):
        return found
    small = made(_Way(gives_small=True)) or found
    best = min(found, small, key=_bad_and_moved)
    if judging.replicas > _BY_CHANCE_MAX or _is_near(best, judging):
        return best
    enough = int(_FAR * (judging.aim(best)))
    lucky = made(_Way(gives_small=best is small, enough=enough)) or best
    return min(best, lucky, key=_bad_and_moved)


def _is_near(found: Alternative, judging: "_Judge") -> bool:
    moved = found.proposal.moved_bytes
    if found.lower_bound_bytes is None or moved <= _FAR * found.lower_bound_bytes:
        return True
    return moved <= _FAR * judging.aim(found)


def _bad_and_moved(found: Alternative) -> tuple[int, int]:
    return len(found.violations), found.proposal.moved_bytes


def _sound(
    made: Mapping[Tolerance, Alternative], asked: Asked, judging: "_Judge"
) -> dict[Tolerance, Alternative]:
    """Without those that do not all that is asked for, or break a rule anew.

    :raises ImpossibleError: nothing is left.
    """
    sound = {
        way: found
        for way, found in made.items()
        if asked.is_whole(found.violations) and not broken_anew(found.violations)
    }
    if sound:
        return sound
    tolerance, found = next(iter(made.items()))
    original = asked.original
    placed = asked.anyhow if asked.is_anything else original
    if placed is None:
        told = "; ".join(map(str, (broken_anew(found.violations) or found.violations)[:NAMES_MAX]))
        raise ImpossibleError(
            f"what is asked can only be done by breaking a rule: {told}. Add a broker, or ask for "
            "less"
        )
    topology, held = original.topology, original.bytes
    return {tolerance: judging.judge(proposal_of(tolerance.name, topology, placed.targets(), held))}


def worth_offering(
    made: Mapping[Tolerance, Alternative], relieved: Collection[int] = ()
) -> list[Alternative]:
    """Without those that another one dominates: better in no figure, bytes on relieved brokers
    among them, and worse in one. That one takes its place. Then without those that allow more
    unevenness than another, and yet do not move less."""
    figures = {
        tolerance: (*_figures(found), _bytes_to(found.proposal, relieved))
        for tolerance, found in made.items()
    }
    left: dict[Tolerance, Alternative] = {}
    for tolerance in made:
        better = [it for it in made if _dominates(figures[it], figures[tolerance])]
        best = min(better, key=figures.__getitem__, default=tolerance)
        left[best] = made[best]
    return [
        found
        for tolerance, found in left.items()
        if not any(
            other.is_stricter_than(tolerance) and _price(rival) <= _price(found)
            for other, rival in left.items()
        )
    ]


def _figures(found: Alternative) -> tuple[int, ...]:
    """All that is shown of an alternative; less is better."""
    proposal, balance = found.proposal, found.balance
    spreads = (balance.replicas, balance.leaders, balance.bytes_in, balance.bytes_out)
    return (
        len(found.violations),
        *(proposal.moved_replicas, proposal.moved_bytes, proposal.moved_leaders),
        *(figure for spread in spreads if spread for figure in (spread.max, -spread.min)),
        balance.bytes.max,
        balance.topics_uneven or 0,
    )


def _still_above(original: Placement, relief: Floats | None, proposal: Proposal) -> Iterator[str]:
    """Tells which relieved brokers stay above what they were to come down to."""
    ids = original.topology.broker_ids
    for id_ in original.request.relieve_brokers if relief is not None else ():
        number = ids.index(id_)
        held = int(original.bytes[number]) + _bytes_to(proposal, (id_,))
        over = held - int(relief[number]) if relief is not None else 0
        if over > 0:
            yield (
                f"broker {id_} keeps {bytes_text(over)} above its share: no replica of it can "
                "leave without making another broker fuller than its share, or than its disks take"
            )


def _bytes_to(proposal: Proposal, brokers: Collection[int]) -> int:
    """Bytes that come to these brokers, less those that leave them."""
    chosen, total = frozenset(brokers), 0
    for change in proposal.changes if chosen else ():
        number = len(chosen.intersection(change.after)) - len(chosen.intersection(change.before))
        total += number * change.size_bytes
    return total


def _dominates(ours: tuple[int, ...], theirs: tuple[int, ...]) -> bool:
    return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))


def _price(found: Alternative) -> tuple[int, int, int]:
    return *_bad_and_moved(found), found.proposal.moved_leaders


def judged_plan(topology: Topology, request: PlanRequest, proposal: Proposal) -> Plan:
    """A proposal that somebody else made, as the only alternative."""
    columns = columns_of(topology)
    judging = _Judge(topology, request, columns, loads_of(topology, columns))
    now = judging.judge(Proposal(name="now"))
    return Plan(
        before=topology,
        request=request,
        balance_before=now.balance,
        alternatives=(judging.judge(proposal),),
        limits=(
            *unknown_sync(topology, proposal.changes),
            *filter(None, (stages_words(proposal.name, proposal.changes),)),
            *assumed(request, proposal),
        ),
    )


class _Judge:
    def __init__(
        self,
        topology: Topology,
        request: PlanRequest,
        columns: Columns,
        loads: Sequence[BrokerLoad],
        relief: Floats | None = None,
    ) -> None:
        self._topology = topology
        self._request = request
        self._columns = columns
        self._loads = loads
        self._prover = Prover(topology, request, columns, relief)

    def judge(self, proposal: Proposal) -> Alternative:
        request = self._request
        after = loads_after(self._loads, proposal.changes)
        reached = self.detailed(balance_among(after, request.remove_brokers), proposal)
        violations = verify_proposal(self._topology, request, proposal)
        least = self._prover.least(proposal, reached, after, violations)
        return Alternative(
            proposal=proposal,
            balance=reached,
            violations=violations,
            lower_bound_bytes=least.bytes,
            lower_bound_replicas=least.replicas,
        )

    @property
    def replicas(self) -> int:
        """Number of replicas in the whole cluster."""
        return len(self._columns.of)

    def aim(self, found: Alternative) -> int:
        """Bytes that the search may hope for."""
        bound = found.lower_bound_bytes or 0
        if not self._prover.asks_more or self._request.replication_factor is not None:
            return bound
        after = loads_after(self._loads, found.proposal.changes)
        least = self._prover.least_by_share(found.proposal, found.balance, after, found.violations)
        return max(bound, least)

    def detailed(self, balance: Balance, proposal: Proposal) -> Balance:
        """With traffic where rates are known, and topics where they are to be even."""
        is_spreading = self._request.goal is Goal.TOPICS
        if not is_spreading and not self._columns.has_traffic:
            return balance
        topology = self._topology
        known = set(topology.broker_ids)
        targets = {k: v for k, v in proposal.targets().items() if known.issuperset(v)}
        columns = columns_of(topology.with_replicas(targets)) if targets else self._columns
        removed = self._request.remove_brokers
        if self._columns.has_traffic:
            bytes_in, bytes_out = traffic_among(columns, topology.broker_ids, removed)
            balance = replace(balance, bytes_in=bytes_in, bytes_out=bytes_out)
        if is_spreading:
            uneven = counts_for(topology, self._request, columns).uneven()
            balance = replace(balance, topics_uneven=uneven)
        return balance


def _propose(
    asked: Asked, request: PlanRequest, tolerance: Tolerance, way: _Way = _FIRST
) -> Proposal:
    """Goes on from where a plan ends, until the next one would better nothing. Partitions that are
    only partly in sync are changed once."""
    original = asked.original
    topology, held = original.topology, original.bytes
    step = _step(asked, request, tolerance, way)
    proposal, told = step.proposal, step.told
    partly = (str(topology.partitions[p].key) for p in original.sync.partly_synced)
    request = replace(request, keep_partitions=(*request.keep_partitions, *partly))
    for _ in range(_STEPS_MAX):
        if step.is_last:
            break
        now = Placement(topology.with_replicas(proposal.targets()), request)
        step = _step(Asked(now), request, tolerance, _FIRST)
        told = step.told or told
        merged = _merged(topology, {**proposal.targets(), **step.proposal.targets()}, tolerance)
        further = proposal_of(tolerance.name, topology, merged, held)
        if stuck_of(further, original):
            break
        proposal = further
    if told:
        asked.told[proposal] = told
    return proposal


def _merged(topology: Topology, targets: _Targets, tolerance: Tolerance) -> _Targets:
    """Targets that several plans made, in the order of the topology."""
    merged = {}
    for key, partition in topology.named(targets).items():
        home, now = partition.replicas, targets[key]
        merged[key] = in_order(home, now) if tolerance.leaders is None else now
        merged[key] = followers_in_order(home, merged[key])
    return merged


def _step(asked: Asked, request: PlanRequest, tolerance: Tolerance, way: _Way) -> _Step:
    """The change that betters most, as far as disks have room for it."""
    now = asked.original
    placed, before, rest, bounds = _bettered(asked, request, tolerance, way)
    nothing = Proposal(name=tolerance.name)
    if not rest < before:
        return _Step(proposal=nothing)
    wanted = proposal_of(tolerance.name, now.topology, placed.targets(), now.bytes)
    made = asked.within_disks(wanted, lambda: _least(asked, request, tolerance))
    told = asked.told.pop(made, "")
    if made is not wanted:
        left = Placement(now.topology.with_replicas(made.targets()), request)
        rest = unrest_of(left, tolerance, bounds)
    if not rest < before:
        return _Step(proposal=nothing, told=told)
    return _Step(proposal=made, is_last=not any(rest), told=told)


def _bettered(
    asked: Asked, request: PlanRequest, tolerance: Tolerance, way: _Way
) -> tuple[Placement, Unrest, Unrest, Bounds]:
    """(a placement, the unrest before, the unrest there, bounds that it is measured by)."""
    now, placed = asked.original, _placed(asked, request, tolerance, way=way)
    is_relief = request.goal is Goal.RELIEVE and tolerance.bytes is None
    bounds = _relief(now) if is_relief else bounds_of(placed, tolerance)
    before, rest = (unrest_of(each, tolerance, bounds) for each in (now, placed))
    if tolerance.puts_traffic_first and tolerance.traffic is not None:
        calmer = _placed(asked, request, tolerance, is_traffic_first=True)
        gained = sum(overload(placed, tolerance.traffic)) - sum(overload(calmer, tolerance.traffic))
        of_calmer = unrest_of(calmer, tolerance, bounds)
        if of_calmer < before and (gained > _CALMER or rest >= before):
            placed, rest = calmer, of_calmer
    return placed, before, rest, bounds


def _least(asked: Asked, request: PlanRequest, tolerance: Tolerance) -> Placement:
    """The placement of what is asked for, and nothing else."""
    is_about_data = request.goal is not Goal.LEADERS
    return _fulfil(asked, tolerance)[0] if is_about_data else asked.original


def _placed(
    asked: Asked,
    request: PlanRequest,
    tolerance: Tolerance,
    *,
    is_traffic_first: bool = False,
    way: _Way = _FIRST,
) -> Placement:
    """Places by the hard rules, then by numbers, bytes and traffic. With traffic first, numbers and
    bytes stay only as even as they are: the scope may not suffice for both. Goal leaders only
    reorders replicas."""
    if request.goal is Goal.LEADERS:
        placement = asked.original.copied()
        even_leaders(placement, leader_bounds(placement, tolerance))
        return placement
    placement = _mended(asked, tolerance)
    if is_traffic_first:
        _calm(placement, tolerance)
        return placement
    if request.goal is Goal.RELIEVE and tolerance.bytes is None:
        _settle(placement, _relief(placement), way)
    else:
        _even(placement, tolerance, way)
    keep_orders(placement)
    if placement.is_target.any():
        leaders = leader_bounds(placement, tolerance)
        if tolerance.leaders is not None:
            even_leaders(placement, leaders)
        if tolerance.spreads_topics:
            even_topic_leaders(placement)
        if tolerance.traffic is not None and placement.columns.has_traffic:
            even_leaving(placement, tolerance.traffic, leaders)
    return placement


def _mended(asked: Asked, tolerance: Tolerance) -> Placement:
    """A placement of what is asked for, with racks repaired: made once for all alternatives that
    treat leaders and racks alike."""
    key = tolerance.leaders is None, tolerance.does_only_what_is_asked
    if key not in asked.mended:
        placement, mender = _fulfil(asked, tolerance)
        leave_what_cannot_be(placement)
        chosen, factor = placement.is_movable, placement.request.replication_factor
        if tolerance.does_only_what_is_asked:
            width = placement.columns.width
            chosen = chosen & (width != (width if factor is None else factor))
        mender.spread_over_racks(chosen)
        asked.mended[key] = placement
    return asked.mended[key].copied()


def _fulfil(asked: Asked, tolerance: Tolerance) -> tuple[Placement, Mender]:
    """(a placement of what is asked for: replication factor, removed brokers, disks of relieved
    ones; its mender)."""
    placement, factor = asked.original.copied(), asked.original.request.replication_factor
    keeps_leaders = tolerance.leaders is None
    mender = Mender(placement, keeps_leaders=keeps_leaders)
    if factor is not None:
        mender.replicate(factor)
        mender = Mender(placement, keeps_leaders=keeps_leaders)
    mender.evacuate()
    complete = asked.complete(placement)
    if complete is not placement:
        mender = Mender(complete, keeps_leaders=keeps_leaders)
    return complete, mender


def _calm(placement: Placement, tolerance: Tolerance) -> None:
    """Traffic alone; numbers and bytes within their bounds, or as uneven as they are."""
    if not placement.is_target.any():
        return
    share = tolerance.traffic or 0.0
    leaders = leader_bounds(placement, tolerance, is_no_worse=True)
    if _is_about_data(tolerance):
        bounds = bounds_of(placement, tolerance).no_worse(placement)
        even_arriving(placement, bounds, share)
        even_leaders(placement, leaders)
    even_leaving(placement, share, leaders)


def _even(placement: Placement, tolerance: Tolerance, way: _Way) -> None:
    """Topics, numbers and bytes, then what arrives; a full disk is relieved, save where only what
    is asked is done."""
    if tolerance.spreads_topics:
        spread_topics(placement, fills_bytes=tolerance.bytes is not None)
    bounds = bounds_of(placement, tolerance)
    is_asked = _is_about_data(tolerance)
    is_full = any(map(placement.is_full, range(placement.brokers)))
    if is_asked or (is_full and not tolerance.does_only_what_is_asked):
        bounds = _settle(placement, bounds, way)
    if is_asked and tolerance.traffic is not None and placement.columns.has_traffic:
        even_arriving(placement, bounds, tolerance.traffic)


def _relief(placement: Placement) -> Bounds:
    ids = placement.topology.broker_ids
    return relief_bounds(placement, [ids.index(id_) for id_ in placement.request.relieve_brokers])


def _settle(placement: Placement, bounds: Bounds, way: _Way) -> Bounds:
    """Within these bounds, or those that are returned where that cannot be, with few bytes."""
    even_out(placement, bounds, gives_small=way.gives_small)
    level(placement, bounds)
    bounds = bounds.beside(placement)
    economize(placement, bounds)
    rethink(placement, bounds)
    if way.enough is not None:
        anneal(placement, bounds, way.enough)
    return bounds


def _is_about_data(tolerance: Tolerance) -> bool:
    return tolerance.replicas is not None or tolerance.bytes is not None
