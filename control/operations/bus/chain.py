"""Chain of the journal: each line carries the hash of the line before it, so that a line that was
changed, removed or put in between is found.

An installation has one chain, whose head (number and hash of the newest line) lies in a file of its
data directory (``use_chain``). The head is advanced in two steps, before and after the bus takes a
line: whoever is killed between them leaves a line that may be there or not, and the next line says
so. Only what was written is hashed: the bytes of the record.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol

LINK: Final = "link"
"""Key of an event's data."""
FAULTS_MAX: Final = 1_000


class Doubtful(NamedTuple):
    """A line that the bus may have or not: nobody heard its answer."""

    number: int
    hash: str
    name: str = ""
    """Of the event, so that another attempt takes the same place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest line that the bus has, and doubtful ones."""

    chain: str
    number: int = 0
    """0: there is none yet."""
    hash: str = ""
    doubtful: tuple[Doubtful, ...] = ()

    def link(self, name: str) -> dict[str, Any]:
        """For the data of the next line, or of another attempt at the line of this name."""
        earlier = self._before(name)
        return {
            "chain": self.chain,
            "number": self.number + len(earlier) + 1,
            "before": self.number,
            "hash": self.hash,
            "doubtful": [[it.number, it.hash] for it in earlier],
        }

    def intended(self, name: str, number: int, line_hash: str) -> "Head":
        """It is about to be written."""
        known = [it for it in self.doubtful if it.name != name]
        wanted = sorted([*known, Doubtful(number, line_hash, name)])
        return Head(chain=self.chain, number=self.number, hash=self.hash, doubtful=tuple(wanted))

    def written(self, number: int, line_hash: str) -> "Head":
        """The bus has it."""
        later = tuple(it for it in self.doubtful if it.number > number)
        return Head(chain=self.chain, number=number, hash=line_hash, doubtful=later)

    def _before(self, name: str) -> tuple[Doubtful, ...]:
        names = [it.name for it in self.doubtful]
        return self.doubtful[: names.index(name)] if name in names else self.doubtful


class HeadFile(Protocol):
    """The head of this installation's chain, held by one process at a time."""

    def try_hold(self) -> AbstractContextManager[None] | None:
        """None: another process holds it."""

    def read(self) -> Head:
        """:raises ChainFileError: it cannot be read."""

    def write(self, head: Head) -> None:
        """:raises ChainFileError: it cannot be written."""


_file: HeadFile | None = None


def use_chain(file: HeadFile | None) -> None:
    """Lines are chained by this head from now on; None: they are not."""
    global _file
    _file = file


def chain_file() -> HeadFile | None:
    """The head in use; None: lines are not chained."""
    return _file


def hash_of(value: bytes) -> str:
    """The hash of a line, as the bus has it."""
    return hashlib.sha256(value).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLine:
    """A line of the journal as it was read."""

    offset: int
    what: str
    who: str
    hash: str
    is_proven: bool
    link: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of a look at all lines."""

    lines: int
    """That are linked."""
    earlier: int
    """Written by older releases, before the first link."""
    heads: Mapping[str, Head]
    """Newest line of each chain."""
    faults: tuple[str, ...]
    own: str = ""
    """The chain whose head is known here; empty: none is."""
    noted: tuple[Head, ...] = ()
    """Lines that have a hash which was noted elsewhere."""


def verify(
    lines: Iterable[WrittenLine], own: Head | None, *, noted: Sequence[str] = ()
) -> Verified:
    """Judges all lines in the order of the topic. ``own``: the head of this installation's chain;
    of others it is not known whether their newest lines are missing. ``noted``: hashes of lines
    that were noted elsewhere, so that chain and head cannot be written anew."""
    chains: dict[str, dict[int, WrittenLine]] = {}
    faults: list[str] = []
    earlier = 0
    for line in lines:
        if not line.is_proven:
            faults.append(f"{_words(line)} is not signed: it was changed, or put in by others")
        elif line.link is None and not chains:
            earlier += 1
        elif line.link is None:
            faults.append(f"{_words(line)} is in no chain: it was put in between")
        else:
            chain = chains.setdefault(line.link["chain"], {})
            known = chain.setdefault(line.link["number"], line)
            if known is not line:
                faults.append(f"{_words(line)} has the number of another: it was put in between")
    for name, chain in chains.items():
        faults += _faults_of(chain, own if own is not None and own.chain == name else None)
    if own is not None and own.number and own.chain not in chains:
        faults.append(f"all {own.number:,} lines of this installation are missing")
    with_hash = {
        line.hash: Head(chain=name, number=number, hash=line.hash)
        for name, chain in chains.items()
        for number, line in chain.items()
    }
    faults += [f"no line has the noted hash {it}" for it in noted if it not in with_hash]
    return Verified(
        lines=sum(map(len, chains.values())),
        earlier=earlier,
        heads={name: _newest(name, chain) for name, chain in chains.items()},
        faults=tuple(faults[:FAULTS_MAX]),
        own="" if own is None else own.chain,
        noted=tuple(with_hash[it] for it in noted if it in with_hash),
    )


def _faults_of(chain: Mapping[int, WrittenLine], own: Head | None) -> list[str]:
    faults: list[str] = []
    sure = {} if own is None or not own.number else {own.number: own.hash}
    doubtful: set[int] = set()
    for number in sorted(chain):
        link = chain[number].link or {}
        faults += _differing(chain, dict(link["doubtful"]))
        faults += _differing(chain, {link["before"]: link["hash"]})
        doubtful.update(known for known, _ in link["doubtful"])
        sure[link["before"]] = link["hash"]
    faults += _differing(chain, sure)
    known = {*chain} | (doubtful - sure.keys())
    lacking = (it for it in range(1, max(*chain, *sure) + 1) if it not in known)
    return [*dict.fromkeys(faults), *map(_missing_words, _ranges(lacking))]


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of numbers, which are in order."""
    for _, run in groupby(enumerate(numbers), key=lambda it: it[1] - it[0]):
        (_, first), *more = run
        yield first, more[-1][1] if more else first


def _missing_words(lines: tuple[int, int]) -> str:
    first, last = lines
    if first == last:
        return f"line {first:,} is missing"
    return f"lines {first:,} to {last:,} are missing"


def _differing(chain: Mapping[int, WrittenLine], hashes: Mapping[int, str]) -> list[str]:
    """Lines that are there and are not those that were linked to."""
    return [
        f"{_words(chain[number])} was changed since the line after it was written"
        for number, line_hash in hashes.items()
        if number in chain and chain[number].hash != line_hash
    ]


def _newest(name: str, chain: Mapping[int, WrittenLine]) -> Head:
    number = max(chain)
    return Head(chain=name, number=number, hash=chain[number].hash)


def _words(line: WrittenLine) -> str:
    number = f"line {line.link['number']:,}" if line.link else "a line"
    return f"{number} ({line.what[:100]!r} by {line.who[:100]!r}, offset {line.offset:,})"
