"""Checks before a reassignment: each a verdict with its reason. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from broker.host_name import address_text
from control.model.units import counted
from control.move.check import NAMES_MAX, Check, Verdict
from control.move.check import check_of as _check
from control.operations.reassignment.disks.preflight_disk import check_disk
from control.operations.reassignment.facts import (
    ClusterFacts,
    cannot_move,
    goes_below_min_isr,
    loses_sync,
    nears_min_isr,
    to_go,
    topology_of,
)
from control.operations.reassignment.placements import left_as_they_are
from control.operations.reassignment.preflight_load import (
    check_throttle,
    check_time,
    expected_seconds,
    lowest_rate,
    spread_of,
    waves_now,
)
from control.operations.reassignment.producer_latency_check import check_producers
from control.operations.reassignment.topic_ids import ANEW
from planner.in_sync import keeps_some
from planner.nearest import Nearest
from planner.proposal import PartitionChange
from planner.racks import Racks, unknown_words
from planner.waves import USUAL_WAVES, WaveRules

__all__ = ["Check", "Verdict", "failures", "is_refused", "preflight"]

MOVING_RIGHT: Final = "ALTER"
"""All else that a move may lack is for its throttle."""
ADDRESSES_MAX: Final = 3
LISTED_MAX: Final = 20
"""So many partitions that cannot move are named."""
RIGHTS: Final = "rights"
GROUPS: Final = "groups"
EXISTENCE: Final = "partitions"
_CURRENT: Final = "plan is current"
_WHERE: Final = {"cluster": "the cluster", "topic": "topics"}


def preflight(
    facts: ClusterFacts,
    changes: tuple[PartitionChange, ...],
    *,
    throttle_bytes_per_s: int | None,
    rolled_back: str | None = None,
    is_adaptive: bool = False,
    rules: WaveRules = USUAL_WAVES,
) -> tuple[Check, ...]:
    """Every check: first what cannot move at all, then in the order in which an operator would ask.
    A rollback (`rolled_back`) leaves out partitions that are deleted, that others moved since or
    that cannot move now."""
    existence = _check_existence(facts, changes, is_rollback=rolled_back is not None)
    running = _check_running(facts, changes, is_rollback=rolled_back is not None)
    if rolled_back is None:
        changes = tuple(c for c in changes if c.key not in facts.reassigning) or changes
    current = (
        _check_stale(facts, changes)
        if rolled_back is None
        else _check_way(facts, changes, rolled_back)
    )
    if rolled_back is not None:
        others = left_as_they_are(facts.places, changes, rolled_back=rolled_back)
        moved = facts.partitions.keys() - others.keys()
        changes = tuple(change for change in changes if change.key in moved)
    immovable = _check_immovable(facts, changes, is_rollback=rolled_back is not None)
    if rolled_back is not None:
        stuck = cannot_move(facts, changes)
        changes = tuple(change for change in changes if change.key not in stuck)
    going = changes if rolled_back is None else to_go(facts, changes, rolled_back=rolled_back)
    waves = waves_now(facts, going, rules)
    spread = spread_of(facts, waves, rules)
    takes = expected_seconds(
        facts, waves, throttle_bytes_per_s, is_adaptive=is_adaptive, spread=spread
    )
    lowest = lowest_rate(facts, waves, throttle_bytes_per_s)
    return (
        *immovable,
        existence,
        current,
        _check_brokers(facts, changes),
        *_check_cordons(facts, changes),
        *_check_listeners(facts, changes),
        _check_shape(facts, changes),
        running,
        check_disk(facts, waves, takes[1] if takes else None),
        _check_min_isr(facts, changes),
        _check_racks(facts, changes),
        _check_sync(facts, changes),
        _check_groups(facts, changes),
        check_throttle(facts, waves, throttle_bytes_per_s),
        check_time(takes, throttle_bytes_per_s, lowest, spread),
        *check_producers(facts.fetch_backoff_ms, changes),
        *_check_rights(facts, changes, is_throttled=throttle_bytes_per_s is not None),
    )


def is_refused(checks: Iterable[Check]) -> bool:
    """Whether any check fails."""
    return any(check.verdict is Verdict.FAIL for check in checks)


def failures(checks: Iterable[Check]) -> str:
    """The failed checks in one line."""
    return "; ".join(f"{c.name}: {c.reason}" for c in checks if c.verdict is Verdict.FAIL)


def _check_immovable(
    facts: ClusterFacts, changes: tuple[PartitionChange, ...], *, is_rollback: bool
) -> tuple[Check, ...]:
    """Check only where something cannot move. A plan fails for partitions without a leader (another
    check names targets that are down). A rollback leaves out what cannot move back, unless that is
    all."""
    stuck = cannot_move(facts, changes)
    if not is_rollback:
        of = facts.partitions
        stuck = {key: why for key, why in stuck.items() if not facts.has_leader(of[key])}
    if not stuck:
        return ()
    by_reason: dict[str, list[str]] = {}
    for key, why in sorted(stuck.items()):
        by_reason.setdefault(why, []).append(str(key))
    told = "; ".join(f"{_listed(names)} {why}" for why, names in by_reason.items())
    partitions, verdict = counted(len(stuck), "partition"), Verdict.FAIL
    what = "cannot move: plan without them, or" if not is_rollback else "cannot go back:"
    if is_rollback and len(stuck) < len(changes):
        verdict, what = Verdict.WARN, "cannot go back and are left out; or"
    reason = (
        f"{told}. {partitions} {what} start the broker and wait until its replicas are there; if "
        "it is gone for good, kafka-leader-election.sh --election-type unclean makes another "
        "replica the leader and loses records"
    )
    return (Check(name="leaders", verdict=verdict, reason=reason),)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED_MAX:,} more" if len(names) > LISTED_MAX else ""
    return ", ".join(names[:LISTED_MAX]) + more


def _check_rights(
    facts: ClusterFacts, changes: tuple[PartitionChange, ...], *, is_throttled: bool
) -> tuple[Check, ...]:
    """Only where something lacks. Throttles are configs; without data to move there is none."""
    sets_configs = is_throttled and any(change.adding for change in changes)
    lacking = [r for r in facts.missing_rights if sets_configs or r.operation == MOVING_RIGHT]
    bad = [f"needs {r.operation} on {_WHERE[r.resource]}; grant it: {r.grant}" for r in lacking]
    is_throttle_only = all(right.operation != MOVING_RIGHT for right in lacking)
    advice = "or move without a throttle (none)" if is_throttle_only else ""
    return (_check(RIGHTS, bad, fine="", advice=advice),) if bad else ()


def _check_existence(
    facts: ClusterFacts, changes: tuple[PartitionChange, ...], *, is_rollback: bool
) -> Check:
    anew = facts.created_anew
    lacking = [c for c in changes if c.key not in facts.partitions]
    bad = [f"{c.key} {ANEW if c.topic in anew else 'does not exist'}" for c in lacking]
    fine = "it exists" if len(changes) == 1 else f"all {len(changes):,} exist"
    if is_rollback and len(bad) < len(changes):
        bad = [f"{words.replace('does not exist', 'was deleted')}: left out" for words in bad]
        return _check(EXISTENCE, bad, fine=fine, verdict=Verdict.WARN)
    if not changes:
        bad = ["the plan changes nothing"]
    return _check(EXISTENCE, bad, fine=fine)


def _check_stale(facts: ClusterFacts, changes: tuple[PartitionChange, ...]) -> Check:
    bad = []
    for change in changes:
        now = facts.placement_of(change.key)
        if now is not None and set(now) != set(change.before) and now != change.after:
            bad.append(
                f"{change.key} is on {list(now)}, the plan was made for {list(change.before)}"
            )
    advice = "plan again from where it is now"
    return _check(_CURRENT, bad, fine="nothing moved since it was made", advice=advice)


def _check_way(
    facts: ClusterFacts, changes: tuple[PartitionChange, ...], rolled_back: str
) -> Check:
    """Refused only where others have moved all of it since."""
    others = left_as_they_are(facts.places, changes, rolled_back=rolled_back)
    bad = [f"{key} {why}" for key, why in others.items()]
    if bad and all(c.key in others for c in changes if c.key in facts.partitions):
        advice = "first roll back what moved it since, or plan from where it is now"
        return _check(_CURRENT, bad, fine="", advice=advice)
    fine = f"nobody moved it since {rolled_back}"
    return _check(_CURRENT, bad, fine=fine, verdict=Verdict.WARN)


def _check_brokers(facts: ClusterFacts, changes: tuple[PartitionChange, ...]) -> Check:
    wanted = {broker for change in changes for broker in change.after}
    bad = [
        f"broker {broker} is unknown or not running" for broker in sorted(wanted - facts.broker_ids)
    ]
    advice = _what_works(facts, changes) if bad else ""
    return _check("brokers", bad, fine="all targets are running", advice=advice)


def _check_cordons(facts: ClusterFacts, changes: Iterable[PartitionChange]) -> tuple[Check, ...]:
    """Only where a broker is cordoned, or a target does not tell: Kafka refuses a list that names a
    cordoned broker, also where the partition has that replica already."""
    going = [change for change in changes if not facts.places.is_there(change)]
    untold = sorted({broker for change in going for broker in change.after} & facts.untold_cordons)
    if not facts.cordoned and not untold:
        return ()
    bad, told = [], []
    for broker in sorted(facts.cordoned):
        naming = [str(change.key) for change in going if broker in change.after]
        if naming:
            failed = [it.path for it in facts.log_dirs.get(broker, ()) if it.is_failed]
            state = f"broker {broker} is cordoned"
            if failed:
                lost = f"{', '.join(failed)} {'has' if len(failed) == 1 else 'have'} failed"
                state = f"on broker {broker} {lost} and the other log directories are cordoned"
            bad.append(f"{state}, and Kafka refuses {_listed(naming)} there")
            told.append(_uncordon_command(facts, broker))
    if untold and not bad:
        names = ", ".join(map(str, untold))
        unknown = f"unknown whether {names} are cordoned: they do not describe log directories"
        advice = "grant DESCRIBE on the cluster; a list that names a cordoned broker is refused"
        return (_check("cordons", [unknown], fine="", verdict=Verdict.WARN, advice=advice),)
    advice = "plan without those brokers, or uncordon them first: " + "; ".join(told)
    fine = f"no target is cordoned ({', '.join(map(str, sorted(facts.cordoned)))} is)"
    return (_check("cordons", bad, fine=fine, advice=advice),)


def _check_listeners(facts: ClusterFacts, changes: Iterable[PartitionChange]) -> tuple[Check, ...]:
    """Only where a broker lacks the listener that was asked: it runs, but cannot be reached."""
    lacks = f"no listener {facts.listener}"
    advice = "ask the cluster by an address of a listener that every broker has"
    adding = {broker for change in changes for broker in change.adding} & facts.hidden
    if adding:
        bad = [f"broker {id_} has {lacks}: its disk is not known" for id_ in sorted(adding)]
        return (_check("listeners", bad, fine="", advice=advice),)
    sending = {b for c in changes if c.adding for b in (*c.before, *c.after)} & facts.hidden
    slow = [f"broker {id_} has {lacks}: it is not throttled" for id_ in sorted(sending)]
    return (
        (_check("listeners", slow, fine="", verdict=Verdict.WARN, advice=advice),) if slow else ()
    )


def _uncordon_command(facts: ClusterFacts, broker: int) -> str:
    known = [address_text(it.host, it.port) for it in facts.brokers[:ADDRESSES_MAX] if it.host]
    ours = f"`partiscope brokers uncordon {broker}`"
    if not known:
        return ours
    return (
        f"{ours}, or kafka-configs.sh --bootstrap-server {','.join(known)} --alter "
        f"--entity-type brokers --entity-name {broker} --delete-config cordoned.log.dirs"
    )


def _what_works(facts: ClusterFacts, changes: tuple[PartitionChange, ...]) -> str:
    """The working assignment nearest to the first that cannot be."""
    topology = topology_of(facts)
    known = {partition.key: partition for partition in topology.partitions}
    for change in changes:
        is_wrong = _is_bad(change) or not facts.targets.issuperset(change.after)
        if (is_wrong or loses_sync(facts, change)) and change.key in known:
            words = Nearest(topology).words(known[change.key], change.after)
            return f"for {change.key} {words}"
    return ""


def _check_shape(facts: ClusterFacts, changes: tuple[PartitionChange, ...]) -> Check:
    bad = [
        f"{c.key}: {list(c.after)} is empty or names a broker twice" for c in changes if _is_bad(c)
    ]
    if bad:
        return _check("replicas", bad, fine="", advice=_what_works(facts, changes))
    changed = [f"{c.key}: {c.factor_words}" for c in changes if c.factor_words]
    fine = "replication factors stay; Kafka 4.1 and later are told to refuse anything else"
    return _check("replicas", changed, fine=fine, verdict=Verdict.WARN)


def _is_bad(change: PartitionChange) -> bool:
    return not change.after or len(set(change.after)) < len(change.after)


def _check_running(
    facts: ClusterFacts, changes: tuple[PartitionChange, ...], *, is_rollback: bool
) -> Check:
    """Check of running reassignments. A plan leaves out partitions that are reassigned already,
    unless that is all; a rollback may turn round those of its operation."""
    ours = {change.key for change in changes}
    moving = sorted(facts.reassigning)
    bad = [f"{key} is being reassigned already" for key in moving if key in ours]
    is_all, verdict = len(bad) == len(ours), Verdict.FAIL
    if is_rollback:
        bad = []
    if not bad or not is_all:
        bad, verdict = [f"{words}: left out" for words in bad], Verdict.WARN
        bad += [f"{key} is moving as well" for key in moving if key not in ours]
    return _check("running reassignments", bad, fine="none", verdict=verdict)


def _check_min_isr(facts: ClusterFacts, changes: tuple[PartitionChange, ...]) -> Check:
    bad = [
        f"{c.key}: {counted(len(c.after), 'replica')}, fewer than min.insync.replicas "
        f"{facts.min_isr[c.topic]}"
        for c in changes
        if len(c.after) < facts.min_isr.get(c.topic, 1)
    ] or [f"{c.key} {words}" for c in changes if (words := goes_below_min_isr(facts, c))]
    if bad:
        return _check("min.insync.replicas", bad, fine="")
    near = (c for c in changes if nears_min_isr(c, facts.partitions.get(c.key)))
    untold = sorted({c.topic for c in near} - facts.min_isr.keys())
    tight = [f"{topic}: unknown, needs DESCRIBE_CONFIGS on topics" for topic in untold]
    tight += [words for change in changes if (words := _at_the_minimum(facts, change))]
    fine = "every moving partition stays above it"
    return _check("min.insync.replicas", tight, fine=fine, verdict=Verdict.WARN)


def _at_the_minimum(facts: ClusterFacts, change: PartitionChange) -> str:
    """Whether producers with acks=all wait, or would with one replica less in sync, while it
    moves: copies count only once they have caught up."""
    partition, least = facts.partitions.get(change.key), facts.min_isr.get(change.topic, 1)
    if partition is None or len(partition.isr) >= len(partition.replicas):
        return ""
    if len(partition.isr) > least:
        return ""
    means = "if one more falls behind," if len(partition.isr) == least else "now"
    return (
        f"{change.key} has {len(partition.isr)} in sync and needs {least}: {means} "
        f"producers with acks=all wait; bring its replicas back first"
    )


def _check_sync(facts: ClusterFacts, changes: tuple[PartitionChange, ...]) -> Check:
    """Check that what is in sync today stays, or copies take its place."""
    lost = [f"{c.key} {words}" for c in changes if (words := loses_sync(facts, c))]
    if lost:
        return _check("in-sync replicas", lost, fine="", advice=_what_works(facts, changes))
    bad = [
        f"{c.key} drops replicas, and nobody tells which are in sync"
        for c in changes
        if c.key in facts.untold_sync and keeps_some(facts.partitions[c.key].replicas, c.after)
    ]
    for change in changes:
        partition = facts.partitions.get(change.key)
        is_told = change.key not in facts.untold_sync
        if is_told and partition is not None and len(partition.isr) < len(partition.replicas):
            bad.append(
                f"{change.key} has {len(partition.isr)} of {len(partition.replicas)} in sync"
            )
    fine = "every replica is in sync"
    return _check("in-sync replicas", bad, fine=fine, verdict=Verdict.WARN)


def _check_racks(facts: ClusterFacts, changes: tuple[PartitionChange, ...]) -> Check:
    """Check for partitions that lose a rack; while the move runs the old copies are there as
    well."""
    racks = Racks(of={broker.id: broker.rack for broker in facts.brokers})
    if not racks.known(racks.of):
        return _check("racks", [], fine="brokers have no racks")
    bad = [words for change in changes if (words := _loses_rack(racks, change))]
    touched = {broker for change in changes for broker in (*change.before, *change.after)}
    fine, told = "no partition loses a rack", ""
    if racks.unknown:
        told = f"{unknown_words(racks.unknown)} and counts as one of its own: set broker.rack"
        fine = f"no partition loses a known one; {told}"
    if not bad and not touched.isdisjoint(racks.unknown):
        bad, told = [fine], ""
    return _check("racks", bad, fine=fine, verdict=Verdict.WARN, advice=told)


def _loses_rack(racks: Racks, change: PartitionChange) -> str:
    before, after = change.before, change.after
    number = racks.number(after)
    if number < racks.number(before) and len(after) > number:
        was = racks.words(before).removesuffix(" racks")
        return f"{change.key} is on {racks.words(after)} afterwards, on {was} now"
    given_up = racks.given_up(before, after)
    return f"{change.key} {given_up}" if given_up else ""


def _check_groups(facts: ClusterFacts, changes: tuple[PartitionChange, ...]) -> Check:
    """Names the groups that read what moves; never fails."""
    moving = {change.key for change in changes if change.adding or change.has_new_leader}
    readers = [
        f"{group} reads {len(read & moving)} of them"
        for group, read in sorted(facts.readers.items())
        if read & moving
    ]
    if not readers:
        return _check(GROUPS, [], fine="no group reads the moving partitions")
    more = f" and {len(readers) - NAMES_MAX} more" if len(readers) > NAMES_MAX else ""
    return _check(GROUPS, [], fine="; ".join(readers[:NAMES_MAX]) + more)
