"""How screens open the metrics store, and the error that they know."""

from spark_metrics.window.aggregates import AggregatesReader, StoreUnreadableError

__all__ = ["StoreUnreadableError", "open_store"]


def open_store(store: str) -> AggregatesReader:
    """A reader for a folder or URL, which need not exist yet; give it to feed and charts."""
    return AggregatesReader(store)
