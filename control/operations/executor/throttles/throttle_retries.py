"""Decides when a throttle that the cluster refused is tried again."""

import math
from enum import Enum, auto
from typing import Final

REFUSED_AGAIN_S: Final = 30.0


class Step(Enum):
    """One of them does not hold up another."""

    WISH = auto()
    RAISE = auto()
    LOWER = auto()
    LIST = auto()
    CATCH_UP = auto()


class ThrottleRetries:
    """When each step may be tried again after a refusal."""

    def __init__(self) -> None:
        self.now_s = -math.inf
        """The clock of readings."""
        self._until_s: dict[Step, float] = {}

    def may(self, step: Step) -> bool:
        """Whether it was not refused within REFUSED_AGAIN_S."""
        return self.now_s >= self._until_s.get(step, -math.inf)

    def refused(self, step: Step) -> None:
        """Just now."""
        self._until_s[step] = self.now_s + REFUSED_AGAIN_S
