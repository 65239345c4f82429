"""Pre-flight's check of disks beside a simulation of what Kafka does: LogManager.nextLogDirs takes
the live, uncordoned directory with the fewest replicas, in whatever order they arrive and leave."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from random import Random
from typing import Final

import pytest

from control.kafka.ports import BrokerNode, LogDir, ReplicaLog
from control.move.check import Verdict
from control.operations.reassignment.disks.preflight_disk import check_disk
from control.operations.reassignment.facts import ClusterFacts, read_facts
from planner.proposal import PartitionChange

BROKER: Final = 9
CASES: Final = 2_000
ORDERS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """As it is in truth: on which file system it lies."""

    path: str
    disk: int
    state: str
    held: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Directories of a broker, free bytes of its file systems, and what comes and goes by wave."""

    directories: tuple[Directory, ...]
    free: tuple[int, ...]
    comes: tuple[dict[str, int], ...]
    goes: tuple[tuple[str, ...], ...]


def random_case(dice: Random) -> Case:
    disks = dice.randint(1, 4)
    held = dice.choice((0, 2, 4))
    directories = []
    for number in range(dice.randint(1, 5)):
        replicas = {f"old{number}.{n}": dice.randint(0, 20) for n in range(dice.randint(0, held))}
        state = dice.choices(("open", "cordoned", "failed"), (4, 2, 1))[0]
        disk = dice.randrange(disks)
        directories.append(Directory(path=f"/d{number}", disk=disk, state=state, held=replicas))
    if not any(it.state == "open" for it in directories):
        directories.append(Directory(path="/d9", disk=0, state="open", held={}))
    waves = dice.randint(1, 3)
    leaving = [name for it in directories if it.state != "failed" for name in it.held]
    dice.shuffle(leaving)
    goes = [leaving[n::waves] if dice.random() < 0.7 else [] for n in range(waves)]
    comes = [
        {
            f"new{wave}.{n}": dice.choice((0, 1, *(dice.randint(20, 60) for _ in "abc")))
            for n in range(dice.randint(0, 4))
        }
        for wave in range(waves)
    ]
    return Case(
        directories=tuple(directories),
        free=tuple(dice.randint(10, 160) for _ in range(disks)),
        comes=tuple(comes),
        goes=tuple(map(tuple, goes)),
    )


async def judge(case: Case) -> Verdict:
    """The verdict on the case, as the protocol tells of it."""
    scale = 1 << 24
    logs = tuple(
        LogDir(
            broker=BROKER,
            path=it.path,
            total_bytes=(1000 + it.disk) * scale,
            usable_bytes=case.free[it.disk] * scale,
            replicas=tuple(
                ReplicaLog(broker=BROKER, topic=name, partition=0, size_bytes=size * scale,
                           offset_lag=0, is_future=False, log_dir=it.path)
                for name, size in it.held.items()
            ),
            is_cordoned=it.state == "cordoned",
        )
        if it.state != "failed"
        else LogDir(broker=BROKER, path=it.path, total_bytes=None, usable_bytes=None,
                    replicas=(), is_failed=True)
        for it in case.directories
    )  # fmt: skip
    facts = await read_facts(_Told(logs))  # type: ignore[arg-type]
    sizes = {name: size for it in case.directories for name, size in it.held.items()}
    waves = [
        (
            *(change(name, (1,), (BROKER,), size * scale) for name, size in comes.items()),
            *(change(name, (BROKER,), (1,), sizes[name] * scale) for name in goes),
        )
        for comes, goes in zip(case.comes, case.goes, strict=True)
    ]
    judged = ClusterFacts(
        cluster_id="c",
        brokers=(BrokerNode(id=BROKER, host="h", port=1),),
        partitions={},
        reassigning={},
        sizes={it.key: it.size_bytes for wave in waves for it in wave},
        usable_bytes={1: 1 << 60, **facts.usable_bytes},
        log_dirs=facts.log_dirs,
        min_isr={},
        disk_reserve=0.0,
    )
    return check_disk(judged, waves).verdict


def change(
    name: str, before: tuple[int, ...], after: tuple[int, ...], size: int
) -> PartitionChange:
    return PartitionChange(topic=name, partition=0, before=before, after=after, size_bytes=size)


class _Told:
    """A cluster that tells log directories and nothing else."""

    def __init__(self, logs: tuple[LogDir, ...]) -> None:
        self.logs = logs

    async def log_dirs(self) -> tuple[LogDir, ...]:
        return self.logs

    async def describe_cluster(self) -> "_Told":
        return self

    cluster_id = "c"
    brokers = ()

    async def topics(self) -> tuple[()]:
        return ()

    async def list_reassignments(self) -> tuple[()]:
        return ()


def overfills(case: Case, orders: Sequence[Sequence[str]], dice: Random) -> bool:
    """Whether this order of events puts more on a file system than is free there."""
    places = {name: it for it in case.directories for name in it.held}
    sizes = {name: size for it in case.directories for name, size in it.held.items()}
    counts = {it.path: len(it.held) for it in case.directories if it.state == "open"}
    open_ones = {it.path: it for it in case.directories if it.state == "open"}
    free = list(case.free)
    for number, order in enumerate(orders):
        freed = []
        for name in order:
            if name in places:
                freed.append(name)
                if places[name].path in counts:
                    counts[places[name].path] -= 1
                continue
            fewest = min(counts.values())
            path = dice.choice([it for it, count in counts.items() if count == fewest])
            counts[path] += 1
            disk = open_ones[path].disk
            free[disk] -= case.comes[number][name]
            if free[disk] < 0:
                return True
        for name in freed:
            free[places[name].disk] += sizes[name]
    return False


def events(case: Case) -> list[list[str]]:
    return [[*comes, *goes] for comes, goes in zip(case.comes, case.goes, strict=True)]


@pytest.mark.parametrize("seed", range(0, CASES, 500))
async def test_what_passes_overfills_no_file_system_in_any_order(seed: int) -> None:
    passed = 0
    for number in range(seed, seed + 500):
        dice = Random(number)
        case = random_case(dice)
        if await judge(case) is Verdict.FAIL:
            continue
        passed += 1
        for _ in range(ORDERS):
            orders = [dice.sample(wave, len(wave)) for wave in events(case)]
            assert not overfills(case, orders, dice), (number, case, orders)
    assert passed > 100


async def test_what_is_refused_in_one_wave_can_overfill_a_file_system() -> None:
    """Of cases without leavers, where each directory has its own file system."""
    refused = 0
    for number in range(CASES):
        dice = Random(number)
        case = random_case(dice)
        comes = {name: size for wave in case.comes for name, size in wave.items()}
        disks = [it.disk for it in case.directories]
        if len(set(disks)) < len(disks) or len(comes) > 5:
            continue
        case = Case(directories=case.directories, free=case.free, comes=(comes,), goes=((),))
        if await judge(case) is not Verdict.FAIL:
            continue
        refused += 1
        tries = product(permutations(comes), range(8))
        assert any(overfills(case, [order], Random(n)) for order, n in tries), (number, case)
    assert refused > 50
