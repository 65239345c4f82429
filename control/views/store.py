"""How screens open the metrics store."""

from spark_metrics.aggregates import AggregatesReader


def open_store(store: str) -> AggregatesReader:
    """A reader for a folder or URL, which need not exist yet; give it to feed and charts."""
    return AggregatesReader(store)
