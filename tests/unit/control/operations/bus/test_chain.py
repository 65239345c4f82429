"""The chain of the journal finds lines that were changed, removed or put in between."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from control.operations.bus.chain import Head, WrittenLine, hash_of, verify

CHAIN: Final = "c0ffee"


class Writer:
    """Writes lines as the journal does, onto a bus that may fail."""

    def __init__(self) -> None:
        self.head = Head(chain=CHAIN)
        self.lines: list[WrittenLine] = []

    def write(self, name: str, *, arrives: bool = True, is_acknowledged: bool = True) -> None:
        """One attempt. Neither: the bus did not take it, which nobody knows."""
        link = self.head.link(name)
        line_hash = hash_of(f"{name} {link}".encode())
        self.head = self.head.intended(name, link["number"], line_hash)
        if arrives:
            self.lines.append(
                WrittenLine(
                    offset=len(self.lines), what=name, who="alice", hash=line_hash,
                    is_proven=True, link=link,
                )
            )  # fmt: skip
        if arrives and is_acknowledged:
            self.head = self.head.written(link["number"], line_hash)


def written(count: int = 6) -> Writer:
    """Lines without any trouble."""
    writer = Writer()
    for number in range(count):
        writer.write(f"line-{number}")
    return writer


def test_a_journal_that_nobody_touched_is_whole() -> None:
    writer = written()
    found = verify(writer.lines, writer.head)
    assert (found.lines, found.faults, found.own) == (6, (), CHAIN)
    assert found.heads[CHAIN].number == 6
    assert verify([], None).faults == ()


Attack = Callable[[list[WrittenLine]], list[WrittenLine]]
ATTACKS: Final[dict[str, tuple[Attack, str]]] = {
    "the first line is removed": (lambda it: it[1:], "line 1 is missing"),
    "a line is cut out": (lambda it: [*it[:2], *it[3:]], "line 3 is missing"),
    "two lines are cut out": (lambda it: [*it[:2], *it[4:]], "lines 3 to 4 are missing"),
    "the newest line is removed": (lambda it: it[:-1], "line 6 is missing"),
    "the newest lines are removed": (lambda it: it[:2], "lines 3 to 6 are missing"),
    "all lines are removed": (lambda it: [], "all 6 lines"),
    "a line is changed without the key": (
        lambda it: [*it[:2], replace(it[2], what="x", is_proven=False), *it[3:]], "not signed"),
    "a line is changed with the key": (
        lambda it: [*it[:2], replace(it[2], hash="0" * 64), *it[3:]], "line 3 ('line-2'"),
    "the newest line is changed with the key": (
        lambda it: [*it[:-1], replace(it[-1], hash="0" * 64)], "was changed"),
    "a line is put in by others": (
        lambda it: [*it[:2], replace(it[2], is_proven=False, link=None), *it[2:]], "not signed"),
    "a line is put in with the key": (
        lambda it: [*it[:2], replace(it[2], link=None), *it[2:]], "is in no chain"),
    "a line is written twice": (
        lambda it: [*it, replace(it[2], offset=9)], "has the number of another"),
    "a line is put in with the next number": (
        lambda it: [*it[:3], replace(it[2], link=it[3].link, hash="1" * 64), *it[3:]],
        "has the number of another"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_on_the_journal_is_found(name: str) -> None:
    writer, (attack, words) = written(), ATTACKS[name]
    faults = verify(attack(writer.lines), writer.head).faults
    assert any(words in fault for fault in faults), faults


def test_a_noted_hash_finds_a_chain_that_was_written_anew_with_its_head() -> None:
    writer, forged = written(), Writer()
    noted = writer.lines[2].hash
    (line,) = verify(writer.lines, writer.head, noted=[noted]).noted
    assert (line.chain, line.number, line.hash) == (CHAIN, 3, noted)
    for number in range(6):
        forged.write(f"other-{number}")
    assert not verify(forged.lines, forged.head).faults
    found = verify(forged.lines, forged.head, noted=[noted, forged.lines[0].hash])
    assert [it.number for it in found.noted] == [1]
    assert found.faults == (f"no line has the noted hash {noted}",)


def test_the_order_of_offsets_is_not_the_order_of_lines() -> None:
    writer = written()
    assert not verify([*writer.lines[3:], *writer.lines[:3]], writer.head).faults


@pytest.mark.parametrize("arrives", [True, False])
def test_a_line_that_was_killed_midway_is_no_fault(arrives: bool) -> None:
    writer = written(2)
    writer.write("killed", arrives=arrives, is_acknowledged=False)
    for number in range(3):
        writer.write(f"later-{number}")
    assert not verify(writer.lines, writer.head).faults
    if arrives:
        changed = [replace(it, hash="0") if it.what == "killed" else it for it in writer.lines]
        assert verify(changed, writer.head).faults


def test_attempts_at_one_line_take_one_place() -> None:
    writer = written(2)
    for _ in range(50):
        writer.write("again", arrives=False)
        writer.write("another", arrives=False)
    assert len(writer.head.doubtful) == 2
    writer.write("again")
    writer.write("another")
    writer.write("last")
    assert not verify(writer.lines, writer.head).faults
    assert writer.head.number == 5
    assert not writer.head.doubtful


def test_a_line_that_comes_after_one_of_a_later_attempt_is_no_fault() -> None:
    writer = written(1)
    writer.write("first", arrives=False)
    writer.write("second")
    writer.write("first")
    writer.write("third")
    assert not verify(writer.lines, writer.head).faults


def test_lines_of_older_releases_stand_before_the_chain() -> None:
    writer = written()
    older = replace(writer.lines[0], link=None)
    assert verify([older, older, *writer.lines], writer.head).earlier == 2


def test_the_chain_of_another_installation_is_judged_but_for_its_end() -> None:
    writer = written()
    own = Head(chain="own")
    assert not verify(writer.lines[:-1], own).faults
    assert verify([*writer.lines[:2], *writer.lines[3:]], own).faults
