"""What can go wrong in this room, as a tree.

MetricsError            carries what happened, why, and what to do next
├── StoreUnreadableError    the store exists but cannot be read
├── StoreTakenError         another metrics job writes the same store
├── JarsError               Spark's Kafka connector cannot be had
├── TopicError              the metrics topic cannot be reached
├── SparkStartError         Spark, or the master that was named, cannot be had
└── OutgrownError           the process is to be started again, larger (``spark_metrics.size``)

(JavaMissingError stands alone in ``spark_metrics.java``, which set-up uses without the rest.)
"""


class MetricsError(Exception):
    """A failure an operator sees: a title, the reason and the next step."""

    def __init__(self, what: str, *, why: str, what_next: str) -> None:
        super().__init__(f"{what}: {why}. {what_next}")
        self.what = what
        self.why = why
        self.what_next = what_next


class StoreUnreadableError(MetricsError):
    """The store exists but cannot be read (a store that is not there yet is no error)."""


class StoreTakenError(MetricsError):
    """Another job has written the store since this one last did."""


class JarsError(MetricsError):
    """Spark's Kafka connector is neither in the cache nor to be fetched."""


class SparkStartError(MetricsError):
    """Spark does not start: its JVM ended, or the master does not answer or takes no job."""


class TopicError(MetricsError):
    """The brokers or the metrics topic cannot be reached."""
