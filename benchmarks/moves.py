"""Reassignments of differing size, load and throttle: what was foreseen, and what came.

    python -m benchmarks.moves [--on ours|kafka] [--moves 21] [--dice N] [--least-s 0] [--auto]
                               [--json FILE]

Three brokers, one topic after the other moved by the executor while a paced producer (acks=all)
writes to it; with `--least-s 30` moves take as long as operators' do, with `--dice` their sizes,
throttles and loads are drawn. For each move: the interval that pre-flight foresaw and the time that
it took; the share of its progress reports whose interval of time left held the truth; the rate that
copies reached against the throttle; the producer's p99 in the seconds before and during the move.
At the end: how often intervals made to hold 50, 80 and 95 % of the truth did, each by what the
moves before it had taught.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self

from control.kafka.admin import KafkaAdmin
from control.model.ids import TopicPartition
from control.operations.calibration import Misses, calibration_of
from control.operations.client import OperationsClient
from control.operations.commands import THROTTLE_AUTO
from control.operations.events import MoveProgress, Outcome
from control.operations.planning import Planning
from tests.contract.operations_site import Site, site_of
from tests.support.paced_producer import PacedProducer

MIB: Final = 1 << 20
LISTEN_S: Final = 3.0
"""Before each move, to the producer alone."""
SETTLE_S: Final = 1.0
VALUE_BYTES: Final = 1000
TURNS: Final = ((101, 102, 103), (102, 103, 101), (103, 101, 102))
"""Who leads, who is in sync, who receives, by turns: Kafka averages a throttle over its last ten
seconds, so a broker that soon sent again would be held back by what it sent before, or let go."""
TAKES_S_MAX: Final = 8
BOUNDS: Final = (0.1, 0.9)
"""Of the bytes: between these the rate of copies is measured."""


AUTO: Final = 0
AUTO_TIMES: Final = 3
"""It begins at 10 MiB/s: so many times as large as others, moves are as long."""


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


@dataclass(slots=True, kw_only=True)
class Moved:
    """One move's figures; times in seconds, rates in bytes per second."""

    case: Case
    foreseen_s: tuple[float, float]
    took_s: float
    reports: int
    reports_held: int
    rate: float | None
    misses: Misses
    trail: list[tuple[float, int, float | None, float | None]]
    """Of each report of progress: seconds before the end, bytes done, time left low and high."""
    before_s: list[float] = field(repr=False)
    during_s: list[float] = field(repr=False)

    @property
    def throttle_share(self) -> float | None:
        """What the leader sent of what it may: copies, and new records to the one in sync, which
        count as well (KIP-73)."""
        if self.rate is None or self.case.throttle_mib == AUTO:
            return None
        produced = self.case.records_per_s * VALUE_BYTES
        return (self.rate + produced) / (self.case.throttle_mib * MIB)

    @property
    def is_foreseen(self) -> bool:
        """Whether it took as long as was said before it began."""
        low, high = self.foreseen_s
        return low <= self.took_s <= high


SHAPES: Final = ((8, 1), (12, 3), (24, 6), (16, 2), (32, 4), (6, 2), (40, 8), (20, 12))
THROTTLES: Final = (2, 4, 8)
LOADS: Final = (50, 200)
SHARES: Final = (0.5, 0.8, 0.95)


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


class ProducerProcess:
    """A paced producer in a process of its own: what is busy here does not count as a wait."""

    def __init__(self, bootstrap: str, topic: str, case: Case) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=produce, args=(theirs, bootstrap, topic, case))
        self._acks: list[tuple[float, float]] = []

    def __enter__(self) -> Self:
        self._process.start()
        assert self._pipe.recv() == "ready"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pipe.send("stop")
        self._acks = self._pipe.recv()
        self._process.join()

    def waits_s(self, since_s: float, until_s: float) -> list[float]:
        """Of each record sent in this time (monotonic, as all processes have it), sorted."""
        return sorted(waited_s for sent_s, waited_s in self._acks if since_s <= sent_s < until_s)


def produce(pipe: Connection, bootstrap: str, topic: str, case: Case) -> None:
    """Until it is told to stop; answers when each record was due and how long it waited."""
    with PacedProducer(
        bootstrap,
        topic,
        partitions=case.partitions,
        per_s=case.records_per_s,
        value_bytes=VALUE_BYTES,
    ) as producer:
        pipe.send("ready")
        pipe.recv()
    assert not producer.failed, producer.failed
    pipe.send([(ack.sent_s, ack.waited_s) for ack in producer.acks.values()])


async def run_case(site: Site, case: Case) -> Moved:
    """Fill a topic, listen to a producer for a while, move."""
    bootstrap = site.cluster.bootstrap
    placement = dict.fromkeys(range(case.partitions), case.before)
    size = case.mib * MIB // case.partitions
    topic = site.topic("bench", placement, partition_bytes=size)
    with ProducerProcess(bootstrap, topic, case) as producer:
        await asyncio.sleep(SETTLE_S)
        listened_s = time.monotonic()
        await asyncio.sleep(LISTEN_S)
        began_s = time.monotonic()
        moved = await move(site, topic, case)
        ended_s = time.monotonic()
    moved.before_s = producer.waits_s(listened_s, began_s)
    moved.during_s = producer.waits_s(began_s, ended_s)
    return moved


async def move(site: Site, topic: str, case: Case) -> Moved:
    """To its end, noting each report of progress when it came."""
    bootstrap = site.cluster.bootstrap
    async with KafkaAdmin.to(bootstrap) as admin, OperationsClient(site.cli.bus) as client:
        targets = {TopicPartition(topic, n): case.after for n in range(case.partitions)}
        proposal = await Planning(admin).proposal(targets)
        rate = THROTTLE_AUTO if case.throttle_mib == AUTO else case.throttle_mib * MIB
        operation_id = await client.submit_reassign(proposal, bootstrap=bootstrap, throttle=rate)
        reports: list[tuple[float, MoveProgress]] = []
        async for state in client.watch(operation_id):
            if state.progress is not None and not (reports and reports[-1][1] is state.progress):
                reports.append((state.updated_ms / 1000, state.progress))
    assert state.outcome is Outcome.DONE, state.message
    assert state.took_s is not None
    assert state.expected_s is not None
    assert state.finished_ms is not None
    assert state.misses is not None
    held = held_reports(reports, state.finished_ms / 1000)
    return Moved(
        case=case,
        foreseen_s=state.expected_s,
        took_s=state.took_s,
        reports=len(held),
        reports_held=sum(held),
        rate=rate_of(reports),
        misses=state.misses,
        trail=[
            (state.finished_ms / 1000 - at_s, p.bytes_done, p.eta_s_low, p.eta_s_high)
            for at_s, p in reports
        ],
        before_s=[],
        during_s=[],
    )


def held_reports(reports: Sequence[tuple[float, MoveProgress]], ended_s: float) -> list[bool]:
    """For each report that named a time left, before all was copied: whether it held the truth."""
    held = []
    for at_s, progress in reports:
        low, high = progress.eta_s_low, progress.eta_s_high
        if low is not None and high is not None and progress.bytes_done < progress.bytes_total:
            held.append(low <= ended_s - at_s <= high)
    return held


def rate_of(reports: Sequence[tuple[float, MoveProgress]]) -> float | None:
    """Bytes per second between a tenth and nine tenths."""
    low, high = BOUNDS
    inside = [
        (at_s, p.bytes_done)
        for at_s, p in reports
        if low * p.bytes_total <= p.bytes_done <= high * p.bytes_total
    ]
    if len(inside) < 3:
        return None
    (first_s, first), (last_s, last) = inside[0], inside[-1]
    return (last - first) / (last_s - first_s)


def p99_ms(waits_s: Sequence[float]) -> float:
    """Of sorted seconds, in ms."""
    return 1000 * waits_s[min(len(waits_s) - 1, int(len(waits_s) * 0.99))] if waits_s else 0.0


def show(found: Sequence[Moved]) -> None:
    """A line for each, and what they say together."""
    print("  MiB  parts  throttle  load/s    foreseen s    took s      reports held  rate/throttle")
    for moved in found:
        case, (low, high) = moved.case, moved.foreseen_s
        share = "–" if moved.throttle_share is None else f"{moved.throttle_share:.2f}"
        mark = " " if moved.is_foreseen else "!"
        print(
            f"{case.mib:5d} {case.partitions:6d} {case.throttle_mib:9d} {case.records_per_s:7d}"
            f"  {low:6.1f} to {high:5.1f} {moved.took_s:8.1f} {mark}"
            f"  {moved.reports_held:6d} of {moved.reports:3d}  {share:>10}"
            f"   p99 {p99_ms(moved.before_s):6.1f} → {p99_ms(moved.during_s):6.1f} ms"
        )
    for name, value in summary(found).items():
        print(f"{name}: {value}")
    for wanted in SHARES:
        held, held_left = learned(found, wanted)
        print(f"made to hold {wanted:.0%}: foreseen {held:.0%}, of time left {held_left:.0%}")


def learned(found: Sequence[Moved], share: float) -> tuple[float, float]:
    """How many intervals, foreseen and of time left, would have held the truth had they been made
    to hold this share of it."""
    past = [moved.misses for moved in found]
    foreseen, left = [], []
    for number, misses in enumerate(past):
        made = calibration_of(past[:number], is_adaptive=misses.is_adaptive, share=share)
        if misses.foreseen is not None:
            foreseen.append(made.foreseen[0] <= misses.foreseen <= made.foreseen[1])
        left += [made.left[0] <= miss <= made.left[1] for miss in misses.left]
    return sum(foreseen) / max(len(foreseen), 1), sum(left) / max(len(left), 1)


def summary(found: Sequence[Moved]) -> dict[str, float | int]:
    """The figures that are promised."""
    shares = [share for moved in found if (share := moved.throttle_share) is not None]
    reports = sum(moved.reports for moved in found)
    held = sum(moved.reports_held for moved in found)
    figures = {
        "moves": len(found),
        "foreseen interval held, share": sum(moved.is_foreseen for moved in found) / len(found),
        "interval of time left held, share of reports": held / max(reports, 1),
    }
    if shares:
        figures["rate against throttle, least"] = min(shares)
        figures["rate against throttle, most"] = max(shares)
    for name, is_led in (("leaders stay", False), ("leaders move", True)):
        chosen = [moved for moved in found if moved.case.moves_leader is is_led]
        before = p99_ms(sorted(wait for moved in chosen for wait in moved.before_s))
        during = p99_ms(sorted(wait for moved in chosen for wait in moved.during_s))
        figures |= {f"p99 before, ms, {name}": before, f"p99 during, ms, {name}": during}
    return {name: round(value, 2) for name, value in figures.items()}


async def run_all(site: Site, chosen: Sequence[Case]) -> list[Moved]:
    """One after the other, each told when it is done."""
    found = []
    for number, case in enumerate(chosen, 1):
        found.append(await run_case(site, case))
        low, high = found[-1].foreseen_s
        told = f"{low:.1f} to {high:.1f} s foreseen"
        print(f"{number}/{len(chosen)}: {case} took {found[-1].took_s:.1f} s, {told}", flush=True)
    return found


def main() -> None:
    """Entry of ``python -m benchmarks.moves``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--on", choices=("ours", "kafka"), default="ours")
    parser.add_argument("--moves", type=int, default=21)
    parser.add_argument("--dice", type=int, help="draw the moves, by this seed")
    parser.add_argument("--least-s", type=int, default=0, help="seconds that each takes at least")
    parser.add_argument("--auto", action="store_true", help="with the throttle that adapts")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    wanted = cases(chosen.moves, chosen.least_s)
    if chosen.dice is not None:
        wanted = drawn_cases(chosen.moves, Random(chosen.dice))
    if chosen.auto:
        wanted = [replace(c, throttle_mib=AUTO, mib=c.mib * AUTO_TIMES) for c in wanted]
    with tempfile.TemporaryDirectory() as folder, site_of(chosen.on, Path(folder)) as site:
        found = asyncio.run(run_all(site, wanted))
    show(found)
    if chosen.json is not None:
        rows = [{k: v for k, v in asdict(m).items() if not k.endswith("ing_s")} for m in found]
        document = {"on": chosen.on, "summary": summary(found), "moves": rows}
        chosen.json.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
