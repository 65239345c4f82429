"""Writes the table of docs/reference/compatibility.md from reports of tests on real Kafka.

    make compatibility ARGS="tests/contract tests/e2e"
    .venv/bin/python scripts/compatibility_table.py REPORT.xml …

A report is JUnit's XML as pytest writes it (`--junitxml`); tests/conftest.py puts into it which
Kafka each test used. Of a test in several reports the newest report counts.
"""

import re
import sys
from collections import Counter
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
    "groups": ("groups", "groups_of_every_type", "share_groups", "share_offsets"),
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


def main(reports: list[str]) -> None:
    """Read the reports, write the table."""
    before, rest = DOCUMENT.read_text().split(BEGIN)
    table = "\n".join(written(counted(map(Path, reports))))
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}")


def counted(reports: Iterator[Path]) -> Counter[tuple[str, str]]:
    """Passed tests by (test file, Kafka version)."""
    ran: dict[str, tuple[str, tuple[str, ...]]] = {}
    for report in sorted(reports, key=lambda it: it.stat().st_mtime):
        for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (our own file)
            module = case.get("classname", "").rpartition(".test_")[2]
            wrong = any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))
            used = [it.attrib["value"] for it in case.iter("property")]
            ran[f"{module}::{case.get('name')}"] = (module, () if wrong else tuple(used))
    return Counter((module, version) for module, versions in ran.values() for version in versions)


def written(counts: Counter[tuple[str, str]]) -> Iterator[str]:
    """The table's lines: an area a row, a version a column, files with their tests in the cells."""
    versions = sorted({version for _, version in counts}, key=_number)
    known = {module for modules in AREAS.values() for module in modules}
    if unknown := sorted({module for module, _ in counts} - known):
        raise SystemExit(f"name an area for {', '.join(unknown)} in scripts/compatibility_table.py")
    yield f"| | {' | '.join(f'Kafka {version}' for version in versions)} |"
    yield "|---" * (len(versions) + 1) + "|"
    for area, modules in AREAS.items():
        cells = [
            ", ".join(f"`{it}` {counts[it, version]}" for it in modules if counts[it, version])
            for version in versions
        ]
        if any(cells):
            yield f"| {area} | {' | '.join(cell or '–' for cell in cells)} |"


def _number(version: str) -> list[int]:
    return [int(it) for it in re.findall(r"\d+", version)]


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    main(sys.argv[1:])
