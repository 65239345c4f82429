"""The errors of this room, as a tree.

MetricsError            carries what happened, why, and what to do next
├── StoreUnreadableError    the store exists but cannot be read
│   └── StoreAwayError          a folder of it is not mounted, or was moved
├── StoreTakenError         another metrics job writes the same store
├── StoreUnfitError         two jobs could write the same store, unseen
├── SqlError                SQL over history is wrong, or would do more than read
├── SqlLimitError           SQL over history takes more time or memory than it may
├── ExportError             Delta tables cannot be read or written
├── JarsError               Spark's Kafka connector cannot be had
├── SparkStartError         Spark, or the master that was named, cannot be had
└── SparkDiedError          Spark's JVM has ended while the job ran

(JavaMissingError stands alone in ``spark_metrics.job.java``, which set-up uses without the rest.)
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


class StoreAwayError(StoreUnreadableError):
    """A folder of the store is not there, or another one stands in its place; it may come back."""


class StoreTakenError(MetricsError):
    """Another job has written the store since this one last did."""


class StoreUnfitError(MetricsError):
    """The system that holds the store cannot put a file only if it is absent."""


class SqlError(MetricsError):
    """SQL over history is wrong, or would do more than read."""

    def __init__(self, why: str, *, what_next: str) -> None:
        super().__init__("history cannot answer this SQL", why=why, what_next=what_next)


class SqlLimitError(MetricsError):
    """SQL over history takes more time or memory than it may."""

    def __init__(self, why: str, *, what_next: str) -> None:
        super().__init__("the SQL over history was ended", why=why, what_next=what_next)


class ExportError(MetricsError):
    """The Delta tables of an export cannot be read or written."""

    def __init__(self, to: str, error: Exception) -> None:
        super().__init__(
            f"history cannot be exported to {to}",
            why=str(error) or type(error).__name__,
            what_next="Check its disk and its rights; the store itself was not changed",
        )


class JarsError(MetricsError):
    """Spark's Kafka connector is neither in the cache nor to be fetched."""


class SparkStartError(MetricsError):
    """Spark does not start: its JVM ended, or the master does not answer or takes no job."""


class SparkDiedError(MetricsError):
    """Spark's JVM has ended while the job ran."""

    def __init__(self, status: int) -> None:
        """``status``: as of a process; that of one that a signal has killed is below 0."""
        is_killed = status in (-9, 137)
        super().__init__(
            "Spark's JVM has ended",
            why="it was killed (signal 9), by the system when memory ran out, or by somebody"
            if is_killed
            else f"its exit status is {status}; what Java wrote is above",
            what_next="Nothing that was committed is lost. Start the job again (`partiscope up` "
            "does); if it was memory, see the system's log and give the machine more",
        )
