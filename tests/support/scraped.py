"""Expositions as a scraper reads them: by the parsers of prometheus-client, which wrote none."""

from collections.abc import Iterable
from typing import Final
from urllib.request import Request, urlopen

from prometheus_client import parser
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as open_parser

from control.exposition.exposition import Written
from control.exposition.series import Format
from tests.support.patience import WAIT_S

OPENMETRICS: Final = "application/openmetrics-text;version=1.0.0"


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
        told = cls._open(written.text(Format.OPENMETRICS).decode() + "# EOF\n")
        plain = cls(parser.text_string_to_metric_families(written.text(Format.PLAIN).decode()))
        assert told.series == plain.series
        return told

    @classmethod
    def from_server(cls, address: str) -> "Scraped":
        """Of ``host:port``, asked as Prometheus asks."""
        asked = Request(f"http://{address}/metrics", headers={"Accept": OPENMETRICS})
        with urlopen(asked, timeout=WAIT_S) as answer:
            assert answer.headers["content-type"].startswith("application/openmetrics-text")
            return cls._open(answer.read().decode())

    @classmethod
    def _open(cls, text: str) -> "Scraped":
        return cls(open_parser.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]

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
