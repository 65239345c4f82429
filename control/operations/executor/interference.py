"""Interference of other tools with the partitions and brokers of a run. Pure."""

from collections.abc import Collection, Iterable

from control.kafka.ports import LogDir
from control.model.ids import TopicPartition
from control.operations.executor.debounce import Debounce
from control.operations.reassignment.facts import cordoned_of
from control.operations.reassignment.placements import Placements
from planner.proposal import PartitionChange


class PartitionWatch:
    """Partitions of a run that another tool takes from it."""

    def __init__(self) -> None:
        self._away = Debounce()
        self._disordered = Debounce()
        self._arrived: set[TopicPartition] = set()
        self._reasons: dict[TopicPartition, str] = {}
        self._retargeted: dict[TopicPartition, str] = {}

    def read(self, asked: Iterable[PartitionChange], places: Placements, now_s: float) -> None:
        """One reading of the cluster; `now_s` is a monotonic clock in seconds."""
        away = []
        for change in asked:
            if places.is_there(change):
                self._arrived.add(change.key)
            elif not places.is_moving(change):
                away.append(change)
        disordered = [c.key for c in away if places.is_reordered(c)]
        self._retargeted = {
            c.key: f"was re-targeted to {_target(places, c)} by another tool"
            for c in away
            if c.key in places.moving
        }
        self._reasons = {c.key: self._reason(c, places) for c in away}
        self._disordered.read(disordered, now_s)
        self._away.read(self._reasons.keys() - set(disordered), now_s)

    def taken(self) -> dict[TopicPartition, str]:
        """Partitions that another tool has taken, and how. A target is the controller's word; a
        placement may be the word of a broker that lags, and must last."""
        lasting = {key: self._reasons[key] for key in self._away.found()}
        return lasting | self._retargeted

    def reordered(self) -> list[TopicPartition]:
        """Partitions on their new replicas, for long, in another order than that of the plan."""
        return self._disordered.found()

    def _reason(self, change: PartitionChange, places: Placements) -> str:
        now = places.placed[change.key].replicas if change.key in places.placed else ()
        if change.key in self._arrived:
            return f"had arrived, and is on {list(now)} now: another tool has moved it"
        if set(now) == set(change.before):
            return "was cancelled by another tool"
        return f"is on {list(now)} now: another tool has moved it"


class CordonWatch:
    """Whether brokers of a run are cordoned, as it was first seen."""

    def __init__(self) -> None:
        self._was: dict[int, bool] = {}
        self._news: list[str] = []

    def take_news(self) -> list[str]:
        """Changes since the last call, in words."""
        news, self._news = self._news, []
        return news

    def read(self, log_dirs: Collection[LogDir], emptied: Collection[int]) -> None:
        """One reading. `emptied`: brokers that hold nothing once the run is done."""
        cordoned = cordoned_of(log_dirs)
        for broker in sorted({log_dir.broker for log_dir in log_dirs}):
            is_cordoned = broker in cordoned
            was, self._was[broker] = self._was.get(broker, is_cordoned), is_cordoned
            if is_cordoned and not was and broker not in emptied:
                self._news.append(
                    f"broker {broker} was cordoned meanwhile: Kafka refuses partitions that name "
                    f"it; `partiscope brokers uncordon {broker}` lets them go there"
                )
            elif was and not is_cordoned and broker in emptied:
                self._news.append(
                    f"broker {broker} was uncordoned meanwhile, so that new replicas may come to "
                    f"it; `partiscope brokers cordon {broker}` cordons it again"
                )


def _target(places: Placements, change: PartitionChange) -> list[int]:
    return list(places.moving[change.key].target_replicas)
