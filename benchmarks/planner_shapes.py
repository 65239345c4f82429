"""How good plans are on clusters of any shape: brokers, racks, replication and sizes by chance.

    python -m benchmarks.planner_shapes [--shapes 240] [--first 0] [--replicas 500 5000]
                                        [--json FILE] [--show]

4 to 40 brokers on 1 to 8 racks of unequal size, 1 to 6 replicas of each partition, 500 to 5,000 in
all (a few dozen a broker; clusters that are recorded have hundreds), log-normal sizes; by turns
disorder is balanced, up to three brokers join, one leaves. The number of a shape is its seed. Told
are bytes moved against the proven bound for the balance reached, violations, and whether any
balance is worse than before (where nobody leaves). The bound is told twice: as plans tell it, for
the extremes of the whole cluster, which on unequal racks say nothing of the larger ones, and for
the balance among brokers of the same share, which the search is for.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.planner import Result, gap_percent, result_of
from planner.columns import columns_of
from planner.figures import Balance, balance_of, loads_after, loads_of
from planner.goals import PlanRequest
from planner.optimizer import Alternative, plan
from planner.proofs.least_moves import Prover
from planner.topology import Topology, TopologyBroker, TopologyPartition

CASES: Final = ("disorder", "join", "leave")
BROKERS: Final = (4, 40)
RACKS: Final = (1, 8)
FACTOR: Final = (1, 6)
REPLICAS: Final = (500, 5_000)
SIGMA: Final = (0.5, 1.6)
"""Of the logarithm of sizes."""
DISORDER: Final = 0.1
PER_TOPIC: Final = 30
WITHIN: Final = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A cluster and what is asked of it."""

    number: int
    case: str
    rack_brokers: tuple[int, ...]
    factor: int
    topology: Topology
    request: PlanRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One alternative for one shape."""

    shape: Shape
    result: Result
    share_bound_bytes: int
    """Proven for the balance among brokers of the same share."""
    is_worse: bool
    """Than before, in the most or fewest replicas or leaders or the most bytes of a broker."""

    @property
    def gaps_percent(self) -> tuple[float, float]:
        """Above the bound: among brokers of the same share, and of the whole cluster."""
        of_share = gap_percent(self.result.moved_bytes, self.share_bound_bytes)
        return of_share, self.result.gap_percent


def shape(number: int, replicas: tuple[int, int] = REPLICAS) -> Shape:
    """The shape of this number, always the same."""
    dice = np.random.default_rng(number)
    case = CASES[number % len(CASES)]
    brokers = int(dice.integers(*BROKERS, endpoint=True))
    racks = int(dice.integers(RACKS[0], min(RACKS[1], brokers), endpoint=True))
    joined = int(dice.integers(1, 3, endpoint=True)) if case == "join" else 0
    factor = int(dice.integers(FACTOR[0], min(FACTOR[1], brokers - 1 - joined), endpoint=True))
    weights = dice.dirichlet(np.full(racks, 2.0))
    rack_brokers = 1 + dice.multinomial(brokers - racks, weights)
    rack_of = dice.permutation(np.repeat(np.arange(racks), rack_brokers))
    partitions = int(dice.integers(*replicas)) // factor
    sizes = dice.lognormal(np.log(2e8), dice.uniform(*SIGMA), partitions).astype(np.int64).tolist()
    placed = _placed(dice, rack_of[: brokers - joined], partitions, factor)
    ids = range(101, 101 + brokers)
    topology = Topology(
        brokers=tuple(
            TopologyBroker(id=id_, rack=f"r{rack}")
            for id_, rack in zip(ids, rack_of.tolist(), strict=True)
        ),
        partitions=tuple(
            TopologyPartition(
                topic=f"t{p // PER_TOPIC}",
                partition=p % PER_TOPIC,
                replicas=tuple(ids[b] for b in row),
                size_bytes=sizes[p],
            )
            for p, row in enumerate(placed)
        ),
    )
    removed = (int(dice.choice(ids)),) if case == "leave" else ()
    return Shape(
        number=number,
        case=case,
        rack_brokers=tuple(sorted(rack_brokers.tolist(), reverse=True)),
        factor=factor,
        topology=topology,
        request=PlanRequest(remove_brokers=removed),
    )


def _placed(
    dice: np.random.Generator, rack_of: np.ndarray, partitions: int, factor: int
) -> Iterator[list[int]]:
    """Racks in turn, as long as they have brokers; a share anywhere."""
    members = [np.flatnonzero(rack_of == rack) for rack in np.unique(rack_of)]
    for _ in range(partitions):
        if dice.random() < DISORDER:
            yield dice.choice(len(rack_of), factor, replace=False).tolist()
            continue
        rows = [dice.permutation(members[rack]) for rack in dice.permutation(len(members))]
        turns = (row[turn] for turn in range(factor) for row in rows if turn < len(row))
        yield [int(broker) for _, broker in zip(range(factor), turns, strict=False)]


def planned(chosen: Shape) -> list[Planned]:
    """Every alternative."""
    topology, case = chosen.topology, chosen.case
    started_s = time.process_time()
    made = plan(topology, chosen.request)
    seconds = time.process_time() - started_s
    before, found = balance_of(topology), []
    for alternative in made.alternatives:
        result = result_of(case, topology, alternative, seconds)
        found.append(
            Planned(
                shape=chosen,
                result=result,
                share_bound_bytes=_share_bound(chosen, alternative),
                is_worse=case != "leave" and _is_worse(before, result),
            )
        )
    return found


def _share_bound(chosen: Shape, alternative: Alternative) -> int:
    topology, proposal = chosen.topology, alternative.proposal
    after = loads_after(loads_of(topology), proposal.changes)
    prover = Prover(topology, chosen.request, columns_of(topology))
    least = prover.least_by_share(proposal, alternative.balance, after, alternative.violations)
    return max(least, alternative.lower_bound_bytes or 0)


def _is_worse(before: Balance, after: Result) -> bool:
    fewest, most = after.replicas_spread
    fewest_led, most_led = after.leaders_spread
    return (
        most > before.replicas.max
        or fewest < before.replicas.min
        or most_led > before.leaders.max
        or fewest_led < before.leaders.min
        or after.bytes_max_over_mean > before.bytes.max / max(1.0, before.bytes.mean) + 1e-3
    )


def table(found: Sequence[Planned]) -> str:
    """Two lines for each alternative: against both bounds."""
    names = list(dict.fromkeys(one.result.plan for one in found))
    head = "".join(f"{f'<= {limit:g} %':>10}" for limit in WITHIN)
    lines = [f"{'plan':<10}{'bound for':<15}{'plans':>6}{head}{'worst':>9}{'bad':>5}{'worse':>7}"]
    for name in names:
        mine = [one for one in found if one.result.plan == name]
        bad = sum(one.result.violations > 0 for one in mine)
        worse = sum(one.is_worse for one in mine)
        for which, bound in enumerate(("each share", "whole cluster")):
            gaps = np.array([one.gaps_percent[which] for one in mine])
            shares = "".join(f"{100 * (gaps <= limit).mean():>9.1f}%" for limit in WITHIN)
            lines.append(
                f"{name:<10}{bound:<15}{len(mine):>6}{shares}{gaps.max():>8.1f}%{bad:>5}{worse:>7}"
            )
    return "\n".join(lines)


def line(one: Planned) -> str:
    """All of one alternative."""
    case, r, (of_share, of_all) = one.shape, one.result, one.gaps_percent
    return (
        f"{case.number:>4} {case.case:<9}{case.rack_brokers} of {case.factor}: {r.replicas} "
        f"{r.plan:<9} {of_share:6.2f} {of_all:6.2f} %  {r.moved_bytes / 1e9:.1f} GB  "
        f"{r.replicas_spread[0]}-{r.replicas_spread[1]}  {r.bytes_max_over_mean:.3f}  "
        f"{r.seconds:.2f} s{f'  {r.violations} violations' if r.violations else ''}"
        f"{'  worse than before' if one.is_worse else ''}"
    )


def main() -> None:
    """Entry of ``python -m benchmarks.planner_shapes``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=int, default=240)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--replicas", type=int, nargs=2, default=REPLICAS, help="least, most")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", action="store_true", help="a line for each plan")
    given = parser.parse_args()
    found: list[Planned] = []
    for number in range(given.first, given.first + given.shapes):
        alternatives = planned(shape(number, given.replicas))
        found += alternatives
        if given.show:
            print("\n".join(map(line, alternatives)), flush=True)
    print(table(found))
    seconds = {one.shape.number: one.result.seconds for one in found}
    print(f"CPU seconds of all alternatives: {sum(seconds.values()):.0f}")
    if given.json is not None:
        rows = [
            {
                "number": one.shape.number,
                "share_bound_bytes": one.share_bound_bytes,
                "is_worse": one.is_worse,
                **asdict(one.result),
            }
            for one in found
        ]
        given.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
