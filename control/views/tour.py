"""The tour: six steps over the demo that show what an operator does first.

Its words are declared here alone. Both faces go to the view of a step and highlight the thing that
it speaks of; where that stands in the view, each face knows.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

TITLE: Final = "Tour"
HELP: Final = "six steps over the demo: what an operator does first"
AGAIN: Final = "The palette (:) has the tour again"


class Offer(StrEnum):
    """When a face shows the tour."""

    NONE = "none"
    """Never: there is no demo."""
    ASKED = "asked"
    """Whenever it is asked for."""
    ONCE = "once"
    """Also by itself, once, to who opens the overview."""


class Thing(StrEnum):
    """The thing in a view that a step points to."""

    MAP = "map"
    GROUPS = "groups"
    SEGMENTS = "segments"
    PLAN = "plan"
    MOVES = "moves"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class TourStep:
    """One step; ``path`` is the view that it goes to."""

    thing: Thing
    path: str
    title: str
    words: str


STEPS: Final = (
    TourStep(
        thing=Thing.MAP,
        path="map",
        title="How partitions lie over brokers",
        words="Each cell is what a broker holds of a topic. The brokers hold unequal parts of"
        " clicks: that is skew. The measure can also be replicas, leaders, throughput or lag.",
    ),
    TourStep(
        thing=Thing.GROUPS,
        path="groups",
        title="What lags, and why",
        words="The group fraud-check commits nothing on one partition, billing is always behind."
        " Open a group to see the partition to blame, its members, and its lag over time.",
    ),
    TourStep(
        thing=Thing.SEGMENTS,
        path="topics/orders/partitions/0/segments",
        title="What lies on disk",
        words="A partition is a row of segments on each of its brokers. Records go into the last"
        " one. Retention deletes whole segments, oldest first, read or not.",
    ),
    TourStep(
        thing=Thing.PLAN,
        path="plan?goal=balance",
        title="Plan a move, see its preview",
        words="Choose a goal and plan: nothing moves yet. The review shows brokers now and after,"
        " data to copy, estimated time and checks. Only your confirmation starts it.",
    ),
    TourStep(
        thing=Thing.MOVES,
        path="moves",
        title="Watch a move, roll it back",
        words="A confirmed plan is listed here. Open it to watch its waves, rate and time left; to"
        " pause, throttle or cancel it; and to roll it back (u), also when it is done.",
    ),
    TourStep(
        thing=Thing.MESSAGES,
        path="browse/orders",
        title="Read messages, send your own",
        words="These are the newest messages of orders. Search by text, key, time or JSON path, or"
        " follow what arrives (F). P sends a message, and shows to which partition its key leads.",
    ),
)
