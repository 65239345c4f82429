"""The partition that a group's lag or status is about."""

from typing import NamedTuple

from control.views.snapshots.snapshot import OperatorSnapshot, list_page
from control.views.tables.commits import COMMITS
from control.views.tables.query import TableQuery


class Blame(NamedTuple):
    """The partition in words, and its view."""

    words: str
    path: str


def partition_to_blame(snapshot: OperatorSnapshot, group: str) -> Blame | None:
    """The group's worst partition, of these the one with most lag; None: nothing waits."""
    rows = list_page(snapshot, COMMITS.name, TableQuery(limit=1), group).rows
    if not rows or not (rows[0].lag.value or rows[0].readable.value):
        return None
    row = rows[0]
    words = [f"{row.topic.text}-{row.partition.text} is to blame: {row.status.text}"]
    words.append(f"lag {row.lag.text}" if row.lag.value else f"{row.readable.text} to read")
    if row.stuck.value:
        words.append(f"stuck for {row.stuck.text}")
    words.append(f"member {row.member.text}" if row.member.value else "no member reads it")
    return Blame(", ".join(words), row.path)
