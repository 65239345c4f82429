"""Cordon a broker: it receives no new replicas."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from control.kafka.ports import LogDir
from control.model.units import counted
from control.operations.catalogue.brokers.cordoning import Cordoning, cordon_form
from control.operations.catalogue.forms import OperationForm


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon(Cordoning):
    """Cordons: replicas that a cordoned log directory holds stay and are served."""

    FORM: ClassVar[OperationForm] = cordon_form(
        "cordon", key="N", title="Cordon a broker", about="it receives no new replicas"
    )
    VERB: ClassVar[str] = "cordon"

    def cordoned_then(self, paths: Collection[str], now: Collection[str]) -> frozenset[str]:
        """Those of before, and these."""
        return frozenset(now) | frozenset(self.directories or paths)

    def notes(self, held: Iterable[LogDir], *, are_all_cordoned: bool) -> tuple[str, ...]:
        """Replicas that stay there, and what Kafka refuses from then on."""
        if not are_all_cordoned:
            return ()
        replicas = sum(not it.is_future for log_dir in held for it in log_dir.replicas)
        stays = f"its {counted(replicas, 'replica')} stay" if replicas else "it holds no replica"
        refused = "Kafka refuses every reassignment and new topic that names it"
        moves = f"`partiscope brokers drain {self.broker}` moves them away"
        return (f"{stays}; {refused}", *([moves] if replicas else []))
