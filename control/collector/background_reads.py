"""Reads that run beside the turns: the more there is to read, the less often.

The bounds are rows a second of one broker. They follow what a warm broker of Kafka 4.1 takes for
a row (docs/operate/watch.md): microseconds for most, half a millisecond for a topic's configs.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from control.collector.ages import LogAges
from control.collector.image import ClusterImage
from control.collector.member import Due, Member, quiet
from control.collector.overview import ClusterOverview
from control.collector.traffic import Traffic

MOVEMENTS_ROWS_PER_S: Final = 2_000
MOVEMENTS_INTERVAL_MS_MAX: Final = 10_000
LOGS_ROWS_PER_S: Final = 500
LOGS_INTERVAL_MS_MAX: Final = 60_000
STARTS_ROWS_PER_S: Final = 350
STARTS_INTERVAL_MS: Final = 5_000
STARTS_INTERVAL_MS_MAX: Final = 30_000
CONFIGS_TOPICS_PER_S: Final = 2
CONFIGS_INTERVAL_MS: Final = 30_000
RIGHTS_INTERVAL_MS: Final = 5_000


class Beside:
    """Begins, after each turn, what is due."""

    def __init__(
        self, overview: ClusterOverview, image: ClusterImage, traffic: Traffic, ages: LogAges
    ) -> None:
        self._overview = overview
        self._image = image
        self._traffic = traffic
        self._ages = ages
        self._configs, self._new_configs, self._movements = Due(), Due(), Due()
        self._rights, self._aging, self._tails = Due(), Due(), Due()

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """Reads of the cluster that have begun; those of members are not among them."""
        dues = (self._configs, self._new_configs, self._movements, self._rights, self._aging)
        return [due.task for due in (*dues, self._tails) if due.task is not None]

    def start(self, ready: Sequence[Member]) -> None:
        """Starts each read that is due, of the cluster and of brokers that answer."""
        image, overview, ages = self._image, self._overview, self._ages
        movements_ms = interval_ms(
            len(image.partitions), MOVEMENTS_ROWS_PER_S, most=MOVEMENTS_INTERVAL_MS_MAX
        )
        self._movements.maybe_start(movements_ms, quiet(overview.read_movements))
        configs_ms = interval_ms(len(image.topics), CONFIGS_TOPICS_PER_S, least=CONFIGS_INTERVAL_MS)
        self._configs.maybe_start(configs_ms, quiet(overview.read_configs))
        if overview.has_new_topics() and not self._configs.is_under_way:
            self._new_configs.maybe_start(0, quiet(overview.read_new_configs))
        self._rights.maybe_start(RIGHTS_INTERVAL_MS, quiet(overview.read_rights))
        ages_ms = ages.interval_ms(ready)
        self._aging.maybe_start(ages_ms, quiet(partial(ages.read, ready)))
        self._tails.maybe_start(ages_ms, quiet(partial(ages.read_tails, ready)))
        for member in ready:
            self._start_one(member)

    def _start_one(self, member: Member) -> None:
        source, image = member.source, self._image
        held, led = len(image.replicas_of(source.broker)), len(image.led_by(source.broker))
        logs_ms = interval_ms(held, LOGS_ROWS_PER_S, most=LOGS_INTERVAL_MS_MAX)
        member.logs.maybe_start(logs_ms, quiet(partial(self._read_logs, member)))
        starts_ms = interval_ms(
            led, STARTS_ROWS_PER_S, least=STARTS_INTERVAL_MS, most=STARTS_INTERVAL_MS_MAX
        )
        member.starts.maybe_start(starts_ms, quiet(source.read_starts))
        member.rights.maybe_start(RIGHTS_INTERVAL_MS, quiet(source.read_rights))

    async def _read_logs(self, member: Member) -> None:
        logs = await member.source.read_logs()
        if logs is None:
            return
        for state in self._image.led_by(member.source.broker):
            if state.key in logs.sizes:
                self._traffic.take_size(state, logs.sizes[state.key])


def interval_ms(rows: int, rows_per_s: int, *, least: int = 0, most: int | None = None) -> int:
    """How long so many rows take at that rate, within bounds."""
    wanted_ms = max(least, rows * 1000 // rows_per_s)
    return wanted_ms if most is None else min(wanted_ms, most)
