"""Reassignments of differing size, load and throttle: what was foreseen, and what came.

    python -m benchmarks.moves [--on ours|kafka] [--moves 21] [--dice N] [--least-s 0] [--auto]
                               [--spread 0] [--beside-tools] [--json FILE]

Three brokers, one topic after the other moved by the executor while a paced producer (acks=all)
writes to it, and another to a topic that stays; with `--least-s 100` moves take minutes, with
`--dice` their sizes, throttles and loads are drawn, with `--spread 300` each is begun over at most
so many seconds, as operators usually have it. For each move: the interval that pre-flight foresaw
and the time that it took; the share of its progress reports whose interval of time left held the
truth; the rate that copies reached against the throttle; the producer's p99 in the seconds before
and during the move and its longest wait; with `--beside-tools` also while Kafka's own tools make
the same move, just before. At the end: how often intervals made to hold 50, 80 and 95 % of the
truth did, each by what the moves before it had taught.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from benchmarks.moves_cases import AUTO, KAFKA_JVM, MIB, TURNS, Case, cases, drawn_cases
from benchmarks.moves_copied import copied
from benchmarks.moves_felt import (
    VALUE_BYTES,
    Felt,
    feel,
    move_by_tools,
    other_traffic,
    p99s_ms,
)
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.ids import TopicPartition
from control.move.events import MoveProgress, Outcome
from control.move.results import Misses
from control.move.throttle import THROTTLE_AUTO
from control.operations.bus.client import OperationsClient
from control.operations.bus.proof import use_keys
from control.operations.reassignment.calibration import calibration_of
from control.operations.reassignment.planning import Planning
from partiscope.proof_keys import KeyFiles
from partiscope.settings import load_settings
from planner.waves import WaveRules
from tests.contract.operations_site import Site, site_of

AUTO_TIMES: Final = 3
"""It begins at 10 MiB/s: so many times as large as others, moves are as long."""
SHARES: Final = (0.5, 0.8, 0.95)
BY_TOOLS: Final = "by Kafka's tools"
T = TypeVar("T")
NOTHING_FELT: Final = Felt(before_s=[], during_s=[])


@dataclass(slots=True, kw_only=True)
class Moved:
    """One move's figures; times in seconds, rates in bytes per second."""

    case: Case
    foreseen_s: tuple[float, float]
    took_s: float
    reports: int
    reports_held: int
    misses: Misses
    trail: list[tuple[float, int, float | None, float | None]]
    """Of each report of progress: seconds before the end, bytes done, time left low and high."""
    rate: float | None = None
    """Of copies (benchmarks.moves_copied); null where they wait for each other."""
    rate_by_tools: float | None = None
    felt: Felt = field(repr=False, default=NOTHING_FELT)
    felt_by_tools: Felt | None = field(repr=False, default=None)

    @property
    def throttle_share(self) -> float | None:
        """By the executor."""
        return self._share(self.rate)

    @property
    def throttle_share_by_tools(self) -> float | None:
        """By Kafka's tools."""
        return self._share(self.rate_by_tools)

    def _share(self, rate: float | None) -> float | None:
        """What the leader sent of what it may: copies, and new records to the one in sync, which
        count as well (KIP-73)."""
        if rate is None or self.case.throttle_mib == AUTO:
            return None
        produced = self.case.records_per_s * VALUE_BYTES
        return (rate + produced) / (self.case.throttle_mib * MIB)

    @property
    def is_foreseen(self) -> bool:
        """Whether it took as long as was said before it began."""
        low, high = self.foreseen_s
        return low <= self.took_s <= high


async def run_case(site: Site, case: Case, rules: WaveRules) -> Moved:
    """By the executor."""
    told, felt = await _watched(site, case, lambda topic: move(site, topic, case, rules))
    moved, rate = told
    return replace(moved, rate=None if rules.spread_s else rate, felt=felt)


async def run_both(site: Site, case: Case, number: int, rules: WaveRules) -> Moved:
    """By Kafka's tools, then by the executor, from another broker."""
    first, second = (replace(case, turn=n % len(TURNS)) for n in (2 * number, 2 * number + 1))
    told, felt = await _watched(site, first, lambda topic: move_by_tools(site, topic, first))
    moved = await run_case(site, second, rules)
    return replace(moved, rate_by_tools=told[1], felt_by_tools=felt)


async def _watched(
    site: Site, case: Case, move: Callable[[str], Awaitable[T]]
) -> tuple[tuple[T, float | None], Felt]:
    """What it answers, how fast copies came, and what a producer felt."""
    bootstrap = site.cluster.bootstrap
    return await feel(site, case, lambda topic: copied(bootstrap, topic, case, move))


async def move(site: Site, topic: str, case: Case, rules: WaveRules) -> Moved:
    """To its end, noting each report of progress when it came."""
    bootstrap = site.cluster.bootstrap
    async with KafkaAdmin.to(bootstrap) as admin, OperationsClient(site.cli.bus) as client:
        targets = {TopicPartition(topic, n): case.after for n in range(case.partitions)}
        proposal = await Planning(admin).proposal(targets)
        rate = THROTTLE_AUTO if case.throttle_mib == AUTO else case.throttle_mib * MIB
        operation_id = await client.submit_reassign(
            proposal, bootstrap=bootstrap, throttle=rate, waves=rules
        )
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
        misses=state.misses,
        trail=[
            (state.finished_ms / 1000 - at_s, p.bytes_done, p.eta_s_low, p.eta_s_high)
            for at_s, p in reports
        ],
    )


def held_reports(reports: Sequence[tuple[float, MoveProgress]], ended_s: float) -> list[bool]:
    """For each report that named a time left, before all was copied: whether it held the truth."""
    held = []
    for at_s, progress in reports:
        low, high = progress.eta_s_low, progress.eta_s_high
        if low is not None and high is not None and progress.bytes_done < progress.bytes_total:
            held.append(low <= ended_s - at_s <= high)
    return held


def show(found: Sequence[Moved]) -> None:
    """A line for each, and what they say together."""
    print("  MiB  parts  throttle  load/s    foreseen s    took s      reports held  rate/throttle")
    for moved in found:
        case, (low, high) = moved.case, moved.foreseen_s
        share = _share_text(moved.throttle_share)
        mark = " " if moved.is_foreseen else "!"
        print(
            f"{case.mib:5d} {case.partitions:6d} {case.throttle_mib:9d} {case.records_per_s:7d}"
            f"  {low:6.1f} to {high:5.1f} {moved.took_s:8.1f} {mark}"
            f"  {moved.reports_held:6d} of {moved.reports:3d}  {share:>10}"
            f"   {moved.felt.words()}"
        )
        if moved.felt_by_tools is not None:
            share = _share_text(moved.throttle_share_by_tools)
            print(f"{BY_TOOLS:>75} {share:>10}   {moved.felt_by_tools.words()}")
    for name, value in summary(found).items():
        print(f"{name}: {value}")
    for wanted in SHARES:
        held, held_left = learned(found, wanted)
        print(f"made to hold {wanted:.0%}: foreseen {held:.0%}, of time left {held_left:.0%}")


def _share_text(share: float | None) -> str:
    return "–" if share is None else f"{share:.2f}"


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
    reports = sum(moved.reports for moved in found)
    held = sum(moved.reports_held for moved in found)
    figures = {
        "moves": len(found),
        "foreseen interval held, share": sum(moved.is_foreseen for moved in found) / len(found),
        "interval of time left held, share of reports": held / max(reports, 1),
    }
    figures |= share_figures([moved.throttle_share for moved in found], "")
    figures |= share_figures([moved.throttle_share_by_tools for moved in found], f", {BY_TOOLS}")
    for name, is_led in (("leaders stay", False), ("leaders move", True)):
        chosen = [moved for moved in found if moved.case.moves_leader is is_led]
        figures |= felt_figures([moved.felt for moved in chosen], name)
        by_tools = [moved.felt_by_tools for moved in chosen if moved.felt_by_tools is not None]
        if by_tools:
            figures |= felt_figures(by_tools, f"{name}, {BY_TOOLS}")
    return {name: round(value, 2) for name, value in figures.items()}


def share_figures(found: Sequence[float | None], name: str) -> dict[str, float]:
    """By what is printed."""
    shares = [share for share in found if share is not None]
    if not shares:
        return {}
    least, most = min(shares), max(shares)
    words = "rate against throttle"
    return {f"{words}, least{name}": least, f"{words}, most{name}": most}


def felt_figures(felt: Sequence[Felt], name: str) -> dict[str, float]:
    """By what is printed."""
    before, during = p99s_ms(felt)
    return {f"p99 before, ms, {name}": before, f"p99 during, ms, {name}": during}


async def run_all(
    site: Site, chosen: Sequence[Case], rules: WaveRules, *, beside_tools: bool
) -> list[Moved]:
    """One after the other, each told when it is done."""
    found = []
    for number, case in enumerate(chosen, 1):
        one = run_both(site, case, number, rules) if beside_tools else run_case(site, case, rules)
        found.append(await one)
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
    parser.add_argument("--spread", type=float, default=0, help="over at most so many seconds")
    parser.add_argument("--beside-tools", action="store_true", help="each also by Kafka's tools")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    use_keys(KeyFiles(load_settings().key_file))
    if chosen.auto and chosen.beside_tools:
        parser.error("Kafka's tools know no automatic throttle: give one of --auto, --beside-tools")
    wanted = cases(chosen.moves, chosen.least_s)
    if chosen.dice is not None:
        wanted = drawn_cases(chosen.moves, Random(chosen.dice))
    if chosen.auto:
        wanted = [replace(c, throttle_mib=AUTO, mib=c.mib * AUTO_TIMES) for c in wanted]
    with (
        tempfile.TemporaryDirectory() as folder,
        site_of(chosen.on, Path(folder), jvm_flags=KAFKA_JVM) as site,
        other_traffic(site),
    ):
        rules = WaveRules(spread_s=chosen.spread)
        found = asyncio.run(run_all(site, wanted, rules, beside_tools=chosen.beside_tools))
    show(found)
    if chosen.json is not None:
        rows = [{k: v for k, v in asdict(m).items() if not k.startswith("felt")} for m in found]
        document = {"on": chosen.on, "summary": summary(found), "moves": rows}
        chosen.json.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
