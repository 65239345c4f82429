"""How screens read the metrics store, a folder or URL that need not exist yet; and the error."""

from spark_metrics.window.aggregates import Aggregates, StoreUnreadableError
from spark_metrics.window.aggregates import AggregatesReader as StoreReader

__all__ = ["Aggregates", "StoreReader", "StoreUnreadableError"]
