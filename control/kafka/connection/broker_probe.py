"""Asks brokers whether they answer, beside a watcher that must not wait for one that hangs."""

import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from typing import Final

from control.kafka.connection.connections import settings_of

ASK_EVERY_S: Final = 1.0
"""Brokers in doubt are asked this often …"""
ASKED_PER_S_MAX: Final = 20
"""… and, where they are many, so many of them a second: each is a connection, with its login."""
ANSWER_ROUNDS_MAX: Final = 4
"""An answer that is older than so many rounds says nothing of now."""

_log: Final = logging.getLogger(__name__)

Addresses = Mapping[int, tuple[str, int]]


def answering_brokers(
    bootstrap: str | None, addresses: Addresses, *, cluster_id: str | None = None
) -> frozenset[int] | None:
    """Which of these brokers answer, within a second; None: nobody knows how to reach them, or
    nobody needs to be asked."""
    if not bootstrap or not addresses:
        return None
    # The client library is loaded only when somebody must be asked: a screen opens sooner.
    from control.kafka.connection.wire import brokers_that_answer

    settings = settings_of(bootstrap, cluster_id=cluster_id or "")
    return asyncio.run(brokers_that_answer(settings, addresses))


class BrokerProbe:
    """Keeps asking in a thread of its own, for as long as somebody wants to know."""

    def __init__(self, bootstrap: str | None, cluster_id: str | None = None) -> None:
        self._bootstrap = bootstrap
        self._cluster_id = cluster_id
        self._asking: threading.Thread | None = None
        self._asked_s = float("-inf")
        self._answer: frozenset[int] | None = None
        self._answered_s = float("-inf")

    def answering(self, addresses: Addresses) -> frozenset[int] | None:
        """The newest answer, without waiting; None: there is none yet, or no doubt."""
        now_s = time.monotonic()
        if not addresses or self._bootstrap is None:
            self._answer = None
            return None
        round_s = max(ASK_EVERY_S, len(addresses) / ASKED_PER_S_MAX)
        is_free = self._asking is None or not self._asking.is_alive()
        if is_free and now_s - self._asked_s >= round_s:
            self._asked_s = now_s
            self._asking = threading.Thread(
                target=self._ask, args=(dict(addresses),), name="broker-probe", daemon=True
            )
            self._asking.start()
        is_new = now_s - self._answered_s <= ANSWER_ROUNDS_MAX * round_s
        return self._answer if is_new else None

    def _ask(self, addresses: Addresses) -> None:
        answer = None
        try:
            answer = answering_brokers(self._bootstrap, addresses, cluster_id=self._cluster_id)
        except Exception:  # noqa: BLE001 (it would be written over the terminal's screen)
            _log.exception("asking brokers whether they answer failed")
        self._answer, self._answered_s = answer, time.monotonic()
