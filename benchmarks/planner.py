"""How fast and how good plans are: synthetic clusters of 2,000 to 2.8 million replicas, and any
topology files given.

    python -m benchmarks.planner                       rungs up to 100,000 replicas
    python -m benchmarks.planner --largest 2800000     all of them
    python -m benchmarks.planner CASE.json …           recorded clusters
    python -m benchmarks.planner --case 60000:minimal:60   one case, on so many brokers

Each rung is planned four times: brokers join, a broker leaves, it leaves and the least moves,
disorder is balanced. Sizes are
log-normal, topics up to 3,500, three racks. Columns: seconds and resident memory of the plan alone
(building the input is not counted), bytes moved against the proven bound, balance, violations.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from planner.goals import Goal, PlanRequest
from planner.optimizer import Alternative, plan
from planner.topology import (
    Topology,
    TopologyBroker,
    TopologyPartition,
    parse_topology,
)

RUNGS: Final = (2_000, 20_000, 100_000, 1_000_000, 2_800_000)
DEFAULT_LARGEST: Final = 100_000
FACTOR: Final = 3
RACKS: Final = 3
SEED: Final = 7
CHUNK_S: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One alternative of one case."""

    case: str
    replicas: int
    brokers: int
    plan: str
    seconds: float
    """Of all alternatives together."""
    memory_mib: int
    moved_replicas: int
    moved_bytes: int
    bound_bytes: int
    replicas_spread: tuple[int, int]
    leaders_spread: tuple[int, int]
    bytes_max_over_mean: float
    violations: int

    @property
    def gap_percent(self) -> float:
        """Above the bound."""
        return gap_percent(self.moved_bytes, self.bound_bytes)


def gap_percent(moved_bytes: int, bound_bytes: int) -> float:
    """How far above the bound; 0 where nothing moves."""
    return 100.0 * (moved_bytes / max(1, bound_bytes) - 1) if moved_bytes else 0.0


def synthetic(
    replicas: int, *, joined: int = 0, order: float = 1.0, brokers: int | None = None
) -> Topology:
    """A cluster of about so many replicas; `joined` brokers are empty; of `order` below 1 that
    share is placed well and the rest anywhere. Without `brokers` their number follows the size."""
    dice = np.random.default_rng(SEED)
    partitions = replicas // FACTOR
    topics = int(min(3_500, max(10, partitions / 40)))
    old = (brokers or int(min(215, max(6, round(replicas**0.5 / 8))))) // RACKS * RACKS
    ids = list(range(101, 101 + old + joined))
    members = tuple(TopologyBroker(id=b, rack=f"r{i % RACKS}") for i, b in enumerate(ids))
    sizes = dice.lognormal(np.log(2e8), 1.2, partitions).astype(np.int64).tolist()
    placed = _placed(dice, partitions, old, order)
    return Topology(
        brokers=members,
        partitions=tuple(
            TopologyPartition(
                topic=f"t{p % topics}",
                partition=p // topics,
                replicas=tuple(ids[b] for b in row),
                size_bytes=sizes[p],
            )
            for p, row in enumerate(placed)
        ),
    )


def _placed(
    dice: np.random.Generator, partitions: int, brokers: int, order: float
) -> list[list[int]]:
    """One broker of each rack in turn, as Kafka does; the disordered anywhere."""
    turn = np.arange(partitions)
    per_rack = brokers // RACKS
    leaders = turn % RACKS
    rows = np.empty((partitions, FACTOR), dtype=np.int64)
    for place in range(FACTOR):
        rack = (leaders + place) % RACKS
        within = (turn // RACKS + place * (1 + turn // brokers)) % per_rack
        rows[:, place] = within * RACKS + rack
    wild = np.flatnonzero(dice.random(partitions) > order)
    for p in wild.tolist():
        rows[p] = dice.choice(brokers, FACTOR, replace=False)
    return list(rows.tolist())


def cases(
    replicas: int, brokers: int | None = None
) -> Iterator[tuple[str, Callable[[], tuple[Topology, PlanRequest]]]]:
    """(name, how to build it)."""

    def join() -> tuple[Topology, PlanRequest]:
        return synthetic(replicas, joined=RACKS, brokers=brokers), PlanRequest()

    def leave(goal: Goal = Goal.BALANCE) -> tuple[Topology, PlanRequest]:
        topology = synthetic(replicas, brokers=brokers)
        return topology, PlanRequest(goal=goal, remove_brokers=(topology.broker_ids[0],))

    def disorder() -> tuple[Topology, PlanRequest]:
        return synthetic(replicas, order=0.9, brokers=brokers), PlanRequest()

    yield "join", join
    yield "leave", leave
    yield "minimal", partial(leave, Goal.MINIMAL)
    yield "disorder", disorder


def measure(case: str, topology: Topology, request: PlanRequest) -> list[Result]:
    """Plan once."""
    started_s = time.process_time()
    made = plan(topology, request)
    seconds = time.process_time() - started_s
    return [result_of(case, topology, alternative, seconds) for alternative in made.alternatives]


def result_of(case: str, topology: Topology, alternative: Alternative, seconds: float) -> Result:
    """The figures of one alternative; `seconds` took all of them together."""
    balance, proposal = alternative.balance, alternative.proposal
    return Result(
        case=case,
        replicas=sum(len(p.replicas) for p in topology.partitions),
        brokers=len(topology.brokers),
        plan=alternative.name,
        seconds=round(seconds, 2),
        memory_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        moved_replicas=proposal.moved_replicas,
        moved_bytes=proposal.moved_bytes,
        bound_bytes=alternative.lower_bound_bytes or 0,
        replicas_spread=(balance.replicas.min, balance.replicas.max),
        leaders_spread=(balance.leaders.min, balance.leaders.max),
        bytes_max_over_mean=round(balance.bytes.max / max(1.0, balance.bytes.mean), 3),
        violations=len(alternative.violations),
    )


def main() -> None:
    """Print a table, then one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--largest", type=int, default=DEFAULT_LARGEST)
    parser.add_argument("--alternatives", type=int, default=3)
    parser.add_argument("--case", help="only this synthetic case, REPLICAS:CASE[:BROKERS]")
    parser.add_argument("--one", help="such a case in this process, as a JSON line")
    given = parser.parse_args()
    if given.one:
        results = _one(given.one, given.alternatives)
        print(json.dumps([asdict(result) for result in results]))
        return
    found: list[Result] = []
    print(HEAD)
    for path in given.files:
        topology = parse_topology(json.loads(path.read_text()))
        request = PlanRequest(alternatives=given.alternatives)
        found += _shown(measure(path.stem, topology, request))
    rungs = [] if given.files or given.case else [r for r in RUNGS if r <= given.largest]
    names = [f"{replicas}:{name}" for replicas in rungs for name, _ in cases(replicas)]
    for name in [given.case] if given.case else names:
        found += _shown(_apart(name, given.alternatives))
    print(json.dumps({"planner": [asdict(result) for result in found]}))


HEAD: Final = (
    f"{'case':<16}{'replicas':>10}{'brokers':>8}  {'plan':<18}{'CPU s':>7}{'MiB':>7}{'moved':>9}"
    f"{'GB':>9}{'gap':>8}{'replicas':>15}{'leaders':>13}{'max/mean':>9}{'bad':>4}"
)


def _one(name: str, alternatives: int) -> list[Result]:
    replicas, wanted, *brokers = name.split(":")
    build = dict(cases(int(replicas), *map(int, brokers)))[wanted]
    topology, request = build()
    return measure(wanted, topology, replace(request, alternatives=alternatives))


def _apart(name: str, alternatives: int) -> list[Result]:
    """In a process of its own, so that memory is that of this case alone."""
    command = (sys.executable, "-m", "benchmarks.planner", "--one", name)
    done = subprocess.run(
        (*command, "--alternatives", str(alternatives)),
        capture_output=True,
        text=True,
        check=True,
        timeout=CHUNK_S,
    )
    return [
        Result(
            **{
                **item,
                "replicas_spread": tuple(item["replicas_spread"]),
                "leaders_spread": tuple(item["leaders_spread"]),
            }
        )
        for item in json.loads(done.stdout)
    ]


def _shown(results: list[Result]) -> list[Result]:
    for r in results:
        counts = f"{r.replicas_spread[0]}-{r.replicas_spread[1]}"
        leads = f"{r.leaders_spread[0]}-{r.leaders_spread[1]}"
        print(
            f"{r.case:<16}{r.replicas:>10,}{r.brokers:>8}  {r.plan:<18}{r.seconds:>7.2f}"
            f"{r.memory_mib:>7}{r.moved_replicas:>9,}{r.moved_bytes / 1e9:>9,.0f}"
            f"{r.gap_percent:>7.1f}%{counts:>15}{leads:>13}{r.bytes_max_over_mean:>9.3f}"
            f"{r.violations:>4}",
            flush=True,
        )
    return results


if __name__ == "__main__":
    main()
