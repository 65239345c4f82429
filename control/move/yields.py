"""Rules by which a move yields to groups that read its partitions and fall behind. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self


class YieldMode(StrEnum):
    """PAUSE: nothing begins until they have caught up. SLOW: the throttle is lowered until then."""

    NO = "no"
    PAUSE = "pause"
    SLOW = "slow"


@dataclass(frozen=True, slots=True, kw_only=True)
class YieldRules:
    """When a move yields, and for how long at most."""

    mode: YieldMode = YieldMode.NO
    behind_s: float = 30.0
    """A group falls behind whose oldest unread record is older, while its lag grows. It has caught
    up at half of this."""
    at_most_s: float = 600.0
    """The longest that one yield lasts: the move then goes on, whoever is behind."""

    def document(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "mode": self.mode.value,
            "behind_s": self.behind_s,
            "at_most_s": self.at_most_s,
        }

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        """The inverse of document(); a command of an older release has none, and yields to none."""
        usual = cls()
        return cls(
            mode=YieldMode(document.get("mode", usual.mode)),
            behind_s=float(document.get("behind_s", usual.behind_s)),
            at_most_s=float(document.get("at_most_s", usual.at_most_s)),
        )


NEVER_YIELDS: Final = YieldRules()
