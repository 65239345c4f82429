"""How screens open and read the metrics store, and the error that they know."""

from spark_metrics.window.aggregates import AggregatesReader as StoreReader
from spark_metrics.window.aggregates import StoreUnreadableError

__all__ = ["StoreReader", "StoreUnreadableError", "open_store"]


def open_store(store: str) -> StoreReader:
    """A reader for a folder or URL, which need not exist yet; give it to feed and charts."""
    return StoreReader(store)
