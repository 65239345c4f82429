"""Foretells which log directory of a broker new replicas get, in the worst order. Pure.

Kafka puts a new replica into the live, uncordoned directory that holds the fewest replicas,
whatever is free there (LogManager.nextLogDirs). Replicas of one wave arrive in any order, those
that leave go at any moment of it, and directories with equal counts are taken in an order that
only the broker knows. So for each file system the bound is: as many replicas as its directories
can get at most, and of each wave the largest ones.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, nlargest

from control.kafka.ports import LogDir, OngoingReassignment
from control.model.ids import TopicPartition
from control.model.log_dirs import FileSystem, file_systems

Arrivals = Sequence[int]
"""Bytes of each replica that comes to a broker in one wave."""


def open_directories(log_dirs: Collection[LogDir]) -> tuple[LogDir, ...]:
    """Directories of one broker that take new replicas; where all are cordoned, what lives."""
    live = tuple(it for it in log_dirs if not it.is_failed)
    return tuple(it for it in live if not it.is_cordoned) or live


def open_file_systems(log_dirs: Collection[LogDir]) -> tuple[FileSystem, ...]:
    """File systems of one broker that new replicas may come to, with all directories on them."""
    paths = {it.path for it in open_directories(log_dirs)}
    found = file_systems(it.sample for it in log_dirs)
    return tuple(it for it in found if not paths.isdisjoint(it.paths))


def even_room(log_dirs: Collection[LogDir]) -> int | None:
    """Bytes that can come to a broker until its first file system is full, where all directories
    get alike many; None where it does not tell."""
    paths = {it.path for it in open_directories(log_dirs)}
    room = []
    for found in open_file_systems(log_dirs):
        if found.usable_bytes is None:
            return None
        room.append(found.usable_bytes * len(paths) // len(paths.intersection(found.paths)))
    return min(room, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disks:
    """Free bytes on brokers."""

    usable_bytes: Mapping[int, int]
    """Free bytes of all file systems that new replicas may come to, by broker that tells."""
    log_dirs: Mapping[int, tuple[LogDir, ...]]
    """Of brokers that have several or a failed one."""
    in_flight: Mapping[int, Mapping[TopicPartition, int]] = field(default_factory=dict)
    """Bytes that running reassignments have still to copy to a broker."""


def read_in_flight(
    moving: Collection[OngoingReassignment],
    log_dirs: Iterable[LogDir],
    sizes: Mapping[TopicPartition, int],
) -> dict[int, dict[TopicPartition, int]]:
    """Bytes that running reassignments have still to copy, by broker."""
    topics = {move.topic for move in moving}
    here = {
        (replica.broker, replica.topic, replica.partition): replica.size_bytes
        for log_dir in (log_dirs if topics else ())
        for replica in log_dir.replicas
        if replica.topic in topics and not replica.is_future
    }
    found: dict[int, dict[TopicPartition, int]] = {}
    for move in moving:
        for broker in move.adding_replicas:
            copied = here.get((broker, move.topic, move.partition), 0)
            rest = max(0, sizes.get(move.key, 0) - copied)
            found.setdefault(broker, {})[move.key] = rest
    return found


def read_disks(log_dirs: Iterable[LogDir]) -> Disks:
    """The disks as log directories tell them."""
    by_broker: dict[int, list[LogDir]] = {}
    for log_dir in log_dirs:
        by_broker.setdefault(log_dir.broker, []).append(log_dir)
    usable = {}
    for broker, found in by_broker.items():
        free = [it.usable_bytes for it in open_file_systems(found)]
        told = [it for it in free if it is not None]
        if told and len(told) == len(free):
            usable[broker] = sum(told)
    return Disks(
        usable_bytes=usable,
        log_dirs={
            broker: tuple(found)
            for broker, found in by_broker.items()
            if len(found) > 1 or found[0].is_failed
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The most that one file system of a broker, or all of its disk, needs at once."""

    broker: int
    needed: int
    """Beyond what it holds now, in bytes."""
    arriving: int
    """The same, had nothing been deleted meanwhile of what left it."""
    usable: int
    replicas: int = 0
    """So many of the arriving replicas may come to it."""
    of_replicas: int = 0
    file_system: FileSystem | None = None
    """None: the broker has one directory."""

    @property
    def where(self) -> str:
        """Its directories, and how many replicas may come there; empty where there is one."""
        if self.file_system is None:
            return ""
        paths = " and ".join(self.file_system.paths)
        return f" in {paths} ({self.replicas} of {self.of_replicas} replicas may come there)"


@dataclass(slots=True, kw_only=True)
class _Filling:
    """One file system while waves arrive."""

    file_system: FileSystem
    paths: frozenset[str]
    """Of its directories that take new replicas."""
    arrived: list[int] = field(default_factory=list)
    """A heap of the largest replicas that may have come to it."""
    arrived_bytes: int = 0
    freed: int = 0
    """Bytes that left with earlier waves, less those that other reassignments still bring."""
    least: int = 0
    """So many replicas have come to it at least, before the wave."""
    peak: int = 0
    peak_replicas: int = 0

    def arrive(self, wave: Arrivals, most: int) -> None:
        """Take the worst of a wave, where at most so many have come in all."""
        for size in nlargest(min(len(wave), most - self.least), wave):
            heappush(self.arrived, size)
            self.arrived_bytes += size
        while len(self.arrived) > most:
            self.arrived_bytes -= heappop(self.arrived)
        needed = self.arrived_bytes - self.freed
        if needed > self.peak:
            self.peak, self.peak_replicas = needed, len(self.arrived)


class DirectoryPlacement:
    """The directories of one broker while the waves of a move arrive."""

    def __init__(self, broker: int, log_dirs: Collection[LogDir]) -> None:
        self._broker = broker
        self._held = {it.path: len(it.replicas) for it in open_directories(log_dirs)}
        self._left = dict.fromkeys(self._held, 0)
        """Replicas that leave open directories, up to and with the wave."""
        self._most = dict.fromkeys(self._held, 0)
        """So many replicas may have come to each open directory at most."""
        self._coming = 0
        self._replicas = {
            TopicPartition(replica.topic, replica.partition): replica
            for it in log_dirs
            for replica in it.replicas
            if not replica.is_future
        }
        self._fillings = [
            _Filling(file_system=found, paths=frozenset(self._held.keys() & set(found.paths)))
            for found in open_file_systems(log_dirs)
        ]

    def still_coming(self, rest: Mapping[TopicPartition, int]) -> None:
        """Take bytes that running reassignments have still to copy, before the first wave."""
        unplaced = [size for key, size in rest.items() if key not in self._replicas]
        for filling in self._fillings:
            filling.freed -= sum(
                size
                for key, size in rest.items()
                if key in self._replicas and self._replicas[key].log_dir in filling.paths
            )
        self.wave(unplaced, ())

    def wave(self, arrivals: Arrivals, leaving: Iterable[TopicPartition]) -> None:
        """The next wave. What it frees counts from the wave after it on: the executor waits until
        Kafka has deleted the files."""
        left = [self._replicas[key] for key in leaving if key in self._replicas]
        for replica in left:
            if replica.log_dir in self._left:
                self._left[replica.log_dir] += 1
        self._coming += len(arrivals)
        if arrivals:
            self._arrive(arrivals)
        for filling in self._fillings:
            paths = filling.file_system.paths
            filling.freed += sum(it.size_bytes for it in left if it.log_dir in paths)

    def _arrive(self, arrivals: Arrivals) -> None:
        self._most = {path: self._most_of(path) for path in self._held}
        most = self._most
        for filling in self._fillings:
            here = sum(most[path] for path in filling.paths)
            elsewhere = sum(most.values()) - here
            filling.arrive(arrivals, min(self._coming, here))
            filling.least = max(0, self._coming - elsewhere)

    def _most_of(self, path: str) -> int:
        """So many replicas may have come to a directory at most, with what comes now: before it
        gets its last one, all others hold as many replicas as it does."""
        fewest = self._held[path] - self._left[path]
        others = [held for other, held in self._held.items() if other != path]
        most = self._most[path]
        while True:
            needed = most + 1 + sum(max(0, fewest + most - held) for held in others)
            if needed > self._coming:
                return most
            most += 1

    def needs(self) -> list[Need]:
        """The need of each file system at its fullest moment; none of those that need nothing
        or do not tell their free bytes."""
        return [
            Need(
                broker=self._broker,
                needed=it.peak,
                arriving=it.arrived_bytes,
                usable=it.file_system.usable_bytes,
                replicas=it.peak_replicas,
                of_replicas=self._coming,
                file_system=it.file_system,
            )
            for it in self._fillings
            if it.peak and it.file_system.usable_bytes is not None
        ]
