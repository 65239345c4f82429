"""What `benchmarks.moves` moves: sizes, partitions, throttles, loads."""

from dataclasses import dataclass
from random import Random
from typing import Final

MIB: Final = 1 << 20
KAFKA_JVM: Final = (
    *("-server", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)
"""As Kafka's own kafka-server-start.sh and kafka-run-class.sh start a broker."""
TURNS: Final = ((101, 102, 103), (102, 103, 101), (103, 101, 102))
"""Who leads, who is in sync, who receives, by turns: Kafka averages a throttle over its last ten
seconds, so a broker that soon sent again would be held back by what it sent before, or let go."""
TAKES_S_MAX: Final = 8

AUTO: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is moved, at which throttle, under which load."""

    mib: int
    partitions: int
    throttle_mib: int
    """AUTO: the one that adapts."""
    records_per_s: int
    turn: int
    moves_leader: bool
    """Or only a follower."""

    @property
    def before(self) -> tuple[int, int]:
        """The replicas, the leader first."""
        leader, in_sync, _ = TURNS[self.turn]
        return leader, in_sync

    @property
    def after(self) -> tuple[int, int]:
        """With the one who receives."""
        leader, in_sync, receives = TURNS[self.turn]
        return (receives, in_sync) if self.moves_leader else (leader, receives)


SHAPES: Final = ((8, 1), (12, 3), (24, 6), (16, 2), (32, 4), (6, 2), (40, 8), (20, 12))
THROTTLES: Final = (2, 4, 8)
LOADS: Final = (50, 200)


def cases(count: int, least_s: int = 0) -> list[Case]:
    """So many different ones, always the same; each takes between some two and eight seconds, or
    with more to copy at least as long as is wanted."""
    found = []
    for number in range(count):
        mib, partitions = SHAPES[number % len(SHAPES)]
        throttle = THROTTLES[(number + number // len(SHAPES)) % len(THROTTLES)]
        while mib / throttle > TAKES_S_MAX:
            throttle *= 2
        mib = max(mib, least_s * throttle)
        load = LOADS[(number // 2) % len(LOADS)]
        found.append(
            Case(
                mib=mib,
                partitions=partitions,
                throttle_mib=throttle,
                records_per_s=load,
                turn=number % len(TURNS),
                moves_leader=number // len(TURNS) % 2 == 0,
            )
        )
    return found


def drawn_cases(count: int, dice: Random) -> list[Case]:
    """Two to forty seconds long, sizes and throttles by their logarithms."""
    found = []
    for number in range(count):
        throttle = dice.choice((1, 2, 4, 8, 12, 16))
        takes_s = 2 * 20 ** dice.random()
        found.append(
            Case(
                mib=max(1, round(takes_s * throttle)),
                partitions=round(24 ** dice.random()),
                throttle_mib=throttle,
                records_per_s=dice.choice((20, 50, 100, 200)),
                turn=number % len(TURNS),
                moves_leader=dice.random() < 0.5,
            )
        )
    return found
