"""Expositions as a scraper reads them: by the parsers of prometheus-client, which wrote none."""

from collections.abc import Iterable

from prometheus_client import parser
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as open_parser

from control.exposition.exposition import Written
from control.exposition.series import Format


class Scraped:
    """Series by name and labels. That no series comes twice is asserted."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self.families = tuple(families)
        names = [it.name for it in self.families]
        assert len(names) == len(set(names)), "a family comes twice"
        samples = [sample for family in self.families for sample in family.samples]
        self.series = {(it.name, frozenset(it.labels.items())): float(it.value) for it in samples}
        assert len(self.series) == len(samples), "a series comes twice"

    @classmethod
    def of(cls, written: Written) -> "Scraped":
        """Of both formats, which must tell the same."""
        open_text = written.text(Format.OPENMETRICS).decode() + "# EOF\n"
        told = cls(open_parser.text_string_to_metric_families(open_text))  # type: ignore[no-untyped-call]
        plain = cls(parser.text_string_to_metric_families(written.text(Format.PLAIN).decode()))
        assert told.series == plain.series
        return told

    @property
    def names(self) -> frozenset[str]:
        """Names of all series."""
        return frozenset(name for name, _ in self.series)

    def value(self, name: str, **labels: str) -> float | None:
        """The value of the one series with these labels among others; None: there is none."""
        found = self.all(name, **labels)
        assert len(found) < 2, found
        return found[0] if found else None

    def all(self, name: str, **labels: str) -> list[float]:
        """Values of all series with these labels among others."""
        wanted = labels.items()
        return [value for (it, told), value in self.series.items() if it == name and wanted <= told]

    def values_of(self, name: str, label: str) -> set[str]:
        """What a label has for values in the series of a name."""
        return {dict(told)[label] for it, told in self.series if it == name}
