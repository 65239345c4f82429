"""Previews as the session makes them of a cluster that answers."""

import time

from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue.operation import Change, Effect, Operation
from control.operations.previews import Previewed

PROD = WatchedCluster(name="prod", bootstrap="127.0.0.1:1", is_production=True)


def previewed(asked: Operation, watched: WatchedCluster = PROD, *, age_s: float = 0) -> Previewed:
    """As the session makes it of a cluster that answers."""
    effect = Effect(command=asked, changes=(Change("orders-0", 1, 2),))
    return previewed_as(effect, watched, age_s=age_s)


def previewed_as(
    effect: Effect[Operation], watched: WatchedCluster = PROD, *, age_s: float = 0
) -> Previewed:
    """The same of a known effect."""
    word = effect.command.word(watched)
    return Previewed(effect=effect, word=word, made_s=time.monotonic() - age_s, name="kept")
