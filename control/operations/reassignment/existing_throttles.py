"""Throttles that brokers have already: of moves of others, or left behind by one. Pure.

Where a broker has a rate of somebody else, ours is not set (see ``executor.throttle``): that one
governs what the broker sends, or receives, of our copies as well.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from control.model.ids import TopicPartition
from control.model.units import byte_rate_text
from control.model.watched_cluster import Site
from control.move.check import NAMES_MAX
from control.move.state import OperationState
from control.move.throttle import (
    FOLLOWER_RATE,
    LEADER_RATE,
    ThrottleRecord,
)
from control.operations.reassignment.producer_traffic import demands
from planner.proposal import PartitionChange

StandingRates = Mapping[int, Mapping[str, int]]
"""broker → config → bytes per second."""
HOW_TO_END: Final = (
    "wait for the move that set it; if none did, `partiscope brokers clear-throttles` shows and "
    "removes it"
)


def own_brokers(states: Iterable[OperationState], site: Site) -> frozenset[int]:
    """Those of a cluster on which operations known here have set a throttle: it goes with them."""
    records = [
        ThrottleRecord.parse(state.throttle)
        for state in states
        if state.throttle and state.site.is_same(site)
    ]
    return frozenset(broker for record in records for broker in record.brokers)


def lower_rates(
    standing: StandingRates, changes: Iterable[PartitionChange], rate: int | None
) -> dict[int, int]:
    """Bytes per second of brokers that carry copies at less than our rate; without one nothing that
    moves is listed as throttled, and no rate holds it back."""
    lower: dict[int, int] = {}
    if rate is None:
        return lower
    for broker, name in _links(changes):
        found = standing.get(broker, {}).get(name)
        if found is not None and found < rate:
            lower[broker] = min(found, lower.get(broker, found))
    return lower


def starved(
    standing: StandingRates,
    waves: Iterable[Sequence[PartitionChange]],
    produced: Mapping[TopicPartition, float],
    rate: int,
) -> tuple[list[str], str]:
    """Where copies would never catch up with producers, though they would at our rate; how that
    ends."""
    words: dict[tuple[int, str], str] = {}
    for wave in waves:
        receives, sends = demands(wave, produced)
        for broker, name in _links(wave):
            found = standing.get(broker, {}).get(name, rate)
            carries = (sends if name == LEADER_RATE else receives).get(broker, 0.0)
            if found < rate and carries >= found:
                words[broker, name] = (
                    f"producers write {byte_rate_text(carries)} to the moving partitions through "
                    f"broker {broker}, whose {name} somebody else has set to "
                    f"{byte_rate_text(found)}: the copies never catch up"
                )
    return list(words.values()), HOW_TO_END if words else ""


def standing_words(standing: StandingRates) -> str:
    """Which brokers have one, and how it goes."""
    named = [
        f"{broker} at {byte_rate_text(min(rates.values()))}"
        for broker, rates in sorted(standing.items())
    ]
    more = f" and {len(named) - NAMES_MAX} more" if len(named) > NAMES_MAX else ""
    what = "broker" if len(named) == 1 else "brokers"
    return (
        f"already throttled by another move or somebody else, and left alone: {what} "
        f"{', '.join(named[:NAMES_MAX])}{more}; {HOW_TO_END}"
    )


def _links(changes: Iterable[PartitionChange]) -> Iterator[tuple[int, str]]:
    """Brokers that send copies or receive them, with the config that limits it."""
    for change in changes:
        if change.adding:
            yield change.sender, LEADER_RATE
        for broker in change.adding:
            yield broker, FOLLOWER_RATE
