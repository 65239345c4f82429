"""Throttle configs that another tool changed while an operation relies on them. Pure.

``kafka-reassign-partitions --verify`` is the usual one: it removes all throttles of the cluster.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from control.model.units import byte_rate_text, counted
from control.move.throttle import (
    ALL_REPLICAS,
    RATES,
    Configs,
    Lists,
    ThrottleRecord,
    listed_entries,
)

NAMES_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignChange:
    """A config that differs from what was set."""

    what: str
    """``broker`` or ``topic``."""
    whose: int | str
    config: str
    was: str
    """The rate, or the entries that lack."""
    now: str | None
    """The rate of somebody else; null: it was removed, as entries of a list are."""

    @property
    def item(self) -> str:
        """Names the config: ``broker 101 leader.replication.throttled.rate``."""
        return f"{self.what} {self.whose} {self.config}"


def foreign_changes(
    record: ThrottleRecord,
    wanted: Lists,
    brokers: Mapping[int, Configs],
    topics: Mapping[str, Configs],
) -> list[ForeignChange]:
    """Configs that brokers and topics do not show as they were set. A list that throttles all
    replicas lacks nothing."""
    rate = str(record.rate)
    rates = [
        ForeignChange(what="broker", whose=broker, config=name, was=rate, now=configs.get(name))
        for broker, configs in sorted(brokers.items())
        for name in RATES
        if configs.get(name) != rate
    ]
    lists = []
    for topic, configs in sorted(topics.items()):
        for name, entries in wanted.get(topic, {}).items():
            present = listed_entries(configs, name)
            lacking = [entry for entry in entries if entry not in present]
            if lacking and ALL_REPLICAS not in present:
                was = ",".join(lacking)
                lists.append(
                    ForeignChange(what="topic", whose=topic, config=name, was=was, now=None)
                )
    return [*rates, *lists]


def foreign_words(changes: Iterable[ForeignChange]) -> str:
    """``leader and follower rate of brokers 101 and 102: 8.0 MiB/s → removed``, and the topics
    whose lists lack replicas."""
    alike: dict[tuple[str, str | None, tuple[str, ...]], list[int | str]] = {}
    by_broker: dict[tuple[int | str, str, str | None], list[str]] = {}
    lists: dict[int | str, int] = {}
    for change in changes:
        if change.what == "topic":
            lists[change.whose] = lists.get(change.whose, 0) + len(change.was.split(","))
        else:
            side = change.config.partition(".")[0]
            by_broker.setdefault((change.whose, change.was, change.now), []).append(side)
    for (broker, was, now), sides in by_broker.items():
        alike.setdefault((was, now, tuple(sides)), []).append(broker)
    words = [
        f"{' and '.join(sides)} rate of {_named('broker', brokers)}: "
        f"{byte_rate_text(float(was))} → {_rate_words(now)}"
        for (was, now, sides), brokers in alike.items()
    ]
    if lists:
        entries = counted(sum(lists.values()), "throttled replica")
        words.append(f"{entries} of {_named('topic', list(lists))} → removed")
    return "; ".join(words)


def _rate_words(now: str | None) -> str:
    return "removed" if now is None else byte_rate_text(float(now))


def _named(what: str, names: list[int | str]) -> str:
    shown = ", ".join(map(str, names[:NAMES_MAX]))
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"{what if len(names) == 1 else what + 's'} {shown}{more}"
