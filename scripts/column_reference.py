"""Writes docs/reference/columns.md from the tables' declarations, every column of every table, and
the heads of docs/reference/definitions.md.

    .venv/bin/python scripts/column_reference.py [--check]

With --check it writes nothing, and exits with 1 where the document is not what it would write.
"""

import re
from collections.abc import Iterator
from typing import Final

from command_reference import ROOT, write_or_check

from control.views.alert_tables import ALERT_RULES, ALERTS, EPISODES, SILENCES
from control.views.cluster.all_clusters import CLUSTERS
from control.views.cluster.racks import RACKS
from control.views.cluster.what_if import SURVIVORS
from control.views.plans import PLAN_BROKERS
from control.views.snapshots.snapshot import LISTS
from control.views.tables.brokers import LOG_DIRS
from control.views.tables.column import Column, Table
from control.views.tables.configs import CONFIGS
from control.views.tables.findings import FINDINGS
from control.views.tables.group_parts import LISTED, MEMBERS, OFFSETS, SHARE_OFFSETS
from control.views.tables.journal import JOURNAL
from control.views.tables.messages import MESSAGES
from control.views.tables.moves import CHANGES, MOVES, MOVING
from control.views.tables.partition_parts import REPLICAS, SEGMENTS
from control.views.tables.topics import LISTED_TOPICS, TOPIC_PARTITIONS

DOCUMENT: Final = ROOT / "docs" / "reference" / "columns.md"
DEFINITIONS: Final = ROOT / "docs" / "reference" / "definitions.md"
HEADS: Final = re.compile(r"(?<=\n## Heads of tables\n).*?(?=\n## )", re.DOTALL)
HEADS_INTRO: Final = """
One head is one measure in every table and card; a table may sum it over more. The columns'
declarations write this list (`scripts/column_reference.py`).

| head | unit | measures | in |
|---|---|---|---|
"""
NAMES: Final = {"lags": "partitions of a group"}
HEAD: Final = """\
# Columns

The tables' declarations write this page (`scripts/column_reference.py`). Page, terminal and
exports show these columns, and so do the lists of the command line.

The name is that of the head, as one word. `--columns`, `--sort` and [filters](filters.md) take it,
and `cols=`, `sort=` and `q=` in an address. They take the head itself, and the other names, too.
Those in files are taken as well; numbers are there in the unit of the column.
"""
SMALL: Final = """\
## Small tables

The whole table is on the screen. Configs and messages have filters of their own.
"""
OTHERS: Final = (LOG_DIRS, REPLICAS, SEGMENTS, MEMBERS, LISTED, OFFSETS, SHARE_OFFSETS,
                 LISTED_TOPICS, TOPIC_PARTITIONS, FINDINGS, RACKS, SURVIVORS, CLUSTERS, MOVES,
                 MOVING, CHANGES, PLAN_BROKERS, JOURNAL, CONFIGS, MESSAGES,
                 ALERTS, ALERT_RULES, SILENCES, EPISODES)  # fmt: skip


def written() -> str:
    """The whole document."""
    parts = [HEAD]
    for wanted in LISTS.values():
        parts += _large(wanted.kind)
    parts.append(SMALL)
    for table in OTHERS:
        parts += _small(table)
    return "\n".join(parts).rstrip() + "\n"


def heads() -> str:
    """Every head that measures something: what, and where it sums over what."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for table in (*(it.kind for it in LISTS.values()), *OTHERS):
        name = NAMES.get(table.name, table.name)
        for it in (*table.columns, *table.unlisted):
            measure, _, scope = it.help.partition("; ")
            if it.unit.name in ("id", "ids", "text", "time") or not measure:
                continue
            places = found.setdefault((it.title, f"{it.unit.name} | {measure}"), {})
            places.setdefault(scope, []).append(name)
    lines = [f"| {title} | {told} | {_places(places)} |" for (title, told), places in found.items()]
    return HEADS_INTRO + "\n".join(sorted(lines)) + "\n"


def _places(places: dict[str, list[str]]) -> str:
    told = [f"{', '.join(names)}{f': {scope}' if scope else ''}" for scope, names in places.items()]
    return "; ".join(told)


def _large(table: Table) -> Iterator[str]:
    example = f"Example of a filter: `{table.example}`."
    yield f"## {NAMES.get(table.name, table.name).capitalize()}\n\n{table.about}. {example}\n"
    yield "| name | unit | other names | in files | |\n|---|---|---|---|---|"
    for it in table.columns:
        yield f"| `{it.name}` | {it.unit.name} | {_other_names(it)} | `{it.id}` | {it.help} |"
    for it in table.unlisted:
        yield f"\nFilters and `--sort` know `{it.name}` too: {it.help or it.title}."
    yield ""


def _small(table: Table) -> Iterator[str]:
    yield f"### {table.name.capitalize()}\n\n{table.about}.\n"
    yield "| id | title | unit | |\n|---|---|---|---|"
    for it in (*table.columns, *table.unlisted):
        yield f"| `{it.id}` | {it.title} | {it.unit.name} | {it.help} |"
    yield ""


def _other_names(column: Column) -> str:
    return " ".join(f"`{name}`" for name in column.filters if name not in (column.name, column.id))


if __name__ == "__main__":
    write_or_check(DOCUMENT, written())
    definitions = DEFINITIONS.read_text()
    write_or_check(DEFINITIONS, HEADS.sub(lambda _: heads(), definitions, count=1))
