"""Why a partition moves, in a few words, from the cluster before and the request. Pure."""

from collections.abc import Sequence

from planner.figures import loads_of
from planner.goals import PlanRequest
from planner.proposal import PartitionChange
from planner.racks import Racks
from planner.topology import Topology


class Reasons:
    """Answers for the changes of one plan."""

    def __init__(self, before: Topology, request: PlanRequest) -> None:
        self._removed = set(request.remove_brokers)
        loads = [load for load in loads_of(before) if load.broker not in self._removed]
        self._loads = {load.broker: load for load in loads}
        self._bytes_mean = sum(load.bytes for load in loads) / max(1, len(loads))
        self._racks = Racks(of={broker.id: broker.rack for broker in before.brokers})

    def why(self, change: PartitionChange) -> str:
        """The first of: replication factor, removed broker, racks, balance, leaders."""
        if change.factor_words:
            return change.factor_words
        gone = sorted(self._removed.intersection(change.removing))
        if gone:
            return f"leaves {_ids(gone)}, which {'is' if len(gone) == 1 else 'are'} removed"
        racks = self._racks
        if len(racks.known(change.after)) > len(racks.known(change.before)):
            was = racks.words(change.before).removesuffix(" rack").removesuffix(" racks")
            return f"on {racks.words(change.after)} instead of {was}"
        if change.adding:
            pairs = zip(change.removing, change.adding, strict=False)
            return "; ".join(f"{self._load(a)} → {self._load(b)}" for a, b in pairs)
        return f"{self._leads(change.before[0])}, {self._leads(change.after[0])}"

    def _load(self, broker: int) -> str:
        load = self._loads.get(broker)
        if load is None:
            return f"{broker}"
        percent = 100 * (load.bytes / self._bytes_mean - 1) if self._bytes_mean else 0.0
        return f"{broker} holds {percent:+.0f} %".replace("-", "−")

    def _leads(self, broker: int) -> str:
        load = self._loads.get(broker)
        return f"{broker} leads {load.leaders}" if load is not None else f"{broker}"


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
