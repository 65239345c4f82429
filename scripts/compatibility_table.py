"""Writes the table of docs/reference/compatibility.md from reports of tests on real Kafka.

    make compatibility ARGS="tests/contract tests/e2e"
    .venv/bin/python scripts/compatibility_table.py REPORT.xml …

A report is JUnit's XML as pytest writes it (`--junitxml`); tests/conftest.py puts into it which
Kafka each test used. Of a test in several reports the newest report counts. Files of which no
report tells keep their count, with the day of their run.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

ROOT: Final = Path(__file__).resolve().parents[1]
DOCUMENT: Final = ROOT / "docs" / "reference" / "compatibility.md"
BEGIN: Final = "<!-- written by scripts/compatibility_table.py -->"
END: Final = "<!-- end -->"
AREAS: Final = {
    "watch: figures, findings, outages": (
        "collector", "collector_orphans", "collector_outages", "commits_that_are_missing",
        "watched_outages", "watched_scene", "two_clusters", "which_cluster", "silent_addresses",
        "skewed_clocks", "growing_clusters", "lag_truth", "table_widths",
    ),
    "log in; rights": ("collector_rights", "watched_secure", "told_rights", "kerberos"),
    "groups": ("groups", "groups_of_every_type", "share_groups", "share_offsets",
        "streams_restore", "members_shown"),
    "plan; check a plan": ("plan_check", "plan_files", "plan_traffic", "impossible_moves"),
    "reassign, throttle, cancel, roll back": (
        "operations", "operations_scenes", "operations_live", "yielding_moves", "moves_in_flight",
        "moves_by_faces", "zookeeper_kafka",
    ),
    "cordon, drain": ("cordoned_brokers", "draining", "kafka_today"),
    "topics, configs, elections, offsets": (
        "catalogue", "several_rows", "operations_admin", "configs", "grammar",
        "terminal_operations",
    ),
    "produce": ("produce_limits", "produce_lines", "refused_produce", "key_rules"),
    "read, search, decode": (
        "reading_records", "internal_topics", "decoding", "message_search", "record_bytes",
    ),
    "README and documents, typed": ("documented_commands", "documented_starts"),
    "bundled brokers beside Kafka": (
        "java_tools", "acks", "stored_codecs", "log_files", "metadata_files", "chaos", "seeds",
        "kafka_oracle",
    ),
}  # fmt: skip
"""What Partiscope does, and the test files about it, without `test_`."""
Counts = dict[tuple[str, str], tuple[int, str]]
"""By test file and version of Kafka: how many tests passed, and the day of the run."""
NONE: Final = (0, "")
_NEWEST: Final = re.compile(r"Run on (\d{4}-\d\d-\d\d)")
_ENTRY: Final = re.compile(r"`(\w+)` (\d+)(?: \((\d{4}-\d\d-\d\d)\))?")


def main(reports: list[str]) -> None:
    """Read the reports, write the table."""
    DOCUMENT.write_text(rewritten(DOCUMENT.read_text(), list(map(Path, reports))))


def rewritten(document: str, reports: list[Path]) -> str:
    """The document with what these reports tell. What they do not tell keeps its count and day."""
    before, rest = document.split(BEGIN)
    table, after = rest.split(END)
    counts = {**told_by(table), **counted(reports)}
    lines = "\n".join(written(counts))
    return f"{before}{BEGIN}\n\n{lines}\n\n{END}{after}"


def told_by(table: str) -> Counts:
    """What stands in a table of this script."""
    counts: Counts = {}
    newest, versions = "", list[str]()
    for line in table.splitlines():
        if found := _NEWEST.match(line):
            newest = found[1]
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if "Kafka " in line and line.startswith("| |"):
            versions = [cell.removeprefix("Kafka ") for cell in cells]
        elif line.startswith("| ") and versions:
            for version, cell in zip(versions, cells[1:], strict=True):
                for name, count, day in _ENTRY.findall(cell):
                    counts[name, version] = int(count), day or newest
    return counts


def counted(reports: list[Path]) -> Counts:
    """Passed tests by (test file, Kafka version), and the day; 0 where all failed."""
    ran: dict[str, tuple[str, list[str], int, str]] = {}
    for report in sorted(reports, key=lambda it: it.stat().st_mtime):
        tree = ElementTree.parse(report)  # noqa: S314 (our own file)
        day = next(tree.iter("testsuite")).attrib["timestamp"][:10]
        for case in tree.iter("testcase"):
            module = case.get("classname", "").rpartition(".test_")[2]
            wrong = any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))
            used = [it.attrib["value"] for it in case.iter("property")]
            ran[f"{module}::{case.get('name')}"] = (module, used, int(not wrong), day)
    counts: Counts = {}
    for module, versions, passed, day in ran.values():
        for version in versions:
            count, newest = counts.get((module, version), (0, day))
            counts[module, version] = count + passed, max(newest, day)
    return counts


def written(counts: Counts) -> Iterator[str]:
    """The newest day, then the table: an area a row, a version a column, files with their tests in
    the cells, and the day behind those that are older."""
    versions = sorted({version for _, version in counts}, key=_number)
    known = {module for modules in AREAS.values() for module in modules}
    if unknown := sorted({module for module, _ in counts} - known):
        raise SystemExit(f"name an area for {', '.join(unknown)} in scripts/compatibility_table.py")
    newest = max(day for count, day in counts.values() if count)
    yield f"Run on {newest}, unless another day stands behind a file."
    yield ""
    yield f"| | {' | '.join(f'Kafka {version}' for version in versions)} |"
    yield "|---" * (len(versions) + 1) + "|"
    for area, modules in AREAS.items():
        cells = []
        for version in versions:
            found = [
                (it, *counts[it, version]) for it in modules if counts.get((it, version), NONE)[0]
            ]
            cells.append(
                ", ".join(
                    f"`{it}` {count}" + ("" if day == newest else f" ({day})")
                    for it, count, day in found
                )
            )
        if any(cells):
            yield f"| {area} | {' | '.join(cell or '–' for cell in cells)} |"


def _number(version: str) -> list[int]:
    return [int(it) for it in re.findall(r"\d+", version)]


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    main(sys.argv[1:])
