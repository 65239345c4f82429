"""Uncordon a broker: it receives new replicas again."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from control.kafka.ports import LogDir
from control.operations.catalogue.brokers.cordoning import Cordoning, cordon_form
from control.operations.catalogue.forms import OperationForm


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordon(Cordoning):
    """Log directories that the broker's properties file cordons are uncordoned as well."""

    FORM: ClassVar[OperationForm] = cordon_form(
        "uncordon", key="Y", title="Uncordon a broker", about="it receives new replicas again"
    )
    VERB: ClassVar[str] = "uncordon"

    def cordoned_then(self, paths: Collection[str], now: Collection[str]) -> frozenset[str]:
        """Those of before without these."""
        return frozenset(now).difference(self.directories or paths)

    def notes(self, held: Iterable[LogDir], *, are_all_cordoned: bool) -> tuple[str, ...]:
        """None."""
        del held, are_all_cordoned
        return ()
