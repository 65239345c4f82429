"""Errors of the read models, under the name that the screens know."""

from spark_metrics.aggregates import StoreUnreadableError

__all__ = ["StoreUnreadableError"]
