"""How screens read the metrics store, a folder or URL that need not exist yet; and the error."""

from spark_metrics.window.aggregates import AggregatesReader as StoreReader
from spark_metrics.window.aggregates import StoreUnreadableError

__all__ = ["StoreReader", "StoreUnreadableError"]
