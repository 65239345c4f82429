"""Writes docs/reference/prometheus.md from the declarations of metric families.

    .venv/bin/python scripts/prometheus_reference.py [--check]

With --check it writes nothing, and exits with 1 where the document is not what it would write.
"""

from typing import Final

from command_reference import ROOT, write_or_check

from control.exposition.families import EVERY_GROUP
from control.exposition.series import Family, SeriesGroup
from dashboard.server.metrics import PROCESS_METRICS

DOCUMENT: Final = ROOT / "docs" / "reference" / "prometheus.md"
HEAD: Final = """\
# Metrics for Prometheus

The declarations of metric families write this page (`scripts/prometheus_reference.py`).
[How to scrape them](../operate/prometheus.md). Unknown and old figures are absent.

Names that begin with `kafka_` are those of kafka_exporter, those with `kminion_` those of kminion.

| metric | type | labels | |
|---|---|---|---|
"""
PROCESS: Final = """
## Of the serving process

Beside these the usual `process_…` of the Prometheus client: memory, CPU, open files.

| metric | |
|---|---|
"""


def written() -> str:
    """The whole document."""
    rows = [_row(group, family) for group in EVERY_GROUP for family in group.families]
    process = (f"| `{name}` | {about} |" for name, about in PROCESS_METRICS.items())
    return HEAD + "\n".join(rows) + "\n" + PROCESS + "\n".join(process) + "\n"


def _row(group: SeriesGroup, family: Family) -> str:
    labels = " ".join(f"`{it}`" for it in group.label_names)
    return f"| `{family.name}` | {family.kind} | {labels} | {family.help} |"


if __name__ == "__main__":
    write_or_check(DOCUMENT, written())
