"""Elections that no request asks for: leaders back home, and any leader where there is none.

An unclean election of a topic whose own config comes to allow it is held at once (config_control).
A config that stands behind those of all topics is looked at here, as Kafka 4.1 does
(QuorumController.electUnclean).
"""

from dataclasses import dataclass

from broker.controller.decision import Decision
from broker.controller.elections import (
    ELECTIONS_MAX,
    IsUncleanEnabled,
    build_preferred_elections,
    build_unclean_elections,
)
from broker.metadata.image import MetadataImage
from broker.metadata.records import MetadataRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """Kafka's broker.session.timeout.ms, auto.leader.rebalance.enable,
    leader.imbalance.check.interval.seconds, leader.imbalance.per.broker.percentage and
    unclean.leader.election.interval.ms; the grace is a new controller's first patience.
    """

    session_timeout_ms: int
    first_grace_ms: int
    is_rebalance_enabled: bool = True
    rebalance_interval_ms: int = 300_000
    imbalance_percentage_max: int = 10
    unclean_interval_ms: int = 300_000


class PeriodicElections:
    """When the next are due, and which; times are monotonic ms."""

    def __init__(self, settings: ControllerSettings, is_unclean_enabled: IsUncleanEnabled) -> None:
        self._settings = settings
        self._is_unclean_enabled = is_unclean_enabled
        self._rebalance_at_ms = self._unclean_at_ms = 0

    def begin(self, now_ms: int) -> None:
        """Each is due when its interval has passed."""
        self._rebalance_at_ms = now_ms + self._settings.rebalance_interval_ms
        self._unclean_at_ms = now_ms + self._settings.unclean_interval_ms

    @property
    def due_at_ms(self) -> int:
        """When to decide again."""
        return min(self._rebalance_at_ms, self._unclean_at_ms)

    def decide(self, image: MetadataImage, now_ms: int) -> Decision[None]:
        """Decides a bounded number of due tasks; the others are due at once."""
        records: list[MetadataRecord] = []
        if now_ms >= self._rebalance_at_ms:
            self._rebalance_at_ms = now_ms + self._settings.rebalance_interval_ms
            if self._settings.is_rebalance_enabled:
                percentage_max = self._settings.imbalance_percentage_max
                records += build_preferred_elections(image, imbalance_percentage_max=percentage_max)
        if now_ms >= self._unclean_at_ms:
            self._unclean_at_ms = now_ms + self._settings.unclean_interval_ms
            elected = build_unclean_elections(
                image, image.topics, self._is_unclean_enabled, elections_max=ELECTIONS_MAX
            )
            if len(elected) >= ELECTIONS_MAX:
                self._unclean_at_ms = now_ms
            records += elected
        return Decision(tuple(records), None)
