"""When each broker was last heard of; soft state of the active controller."""

from collections.abc import Iterable


class BrokerSessions:
    """A broker whose last heartbeat is older than the session timeout has no valid session.

    A new controller has heard of nobody: it grants every unfenced broker a first grace, shorter
    than a whole session, because brokers find a new controller within a heartbeat or two, and
    one that died together with the old controller has been silent for a while already.
    """

    def __init__(self, *, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._deadline_ms: dict[int, int] = {}

    def begin(self, broker_ids: Iterable[int], now_ms: int, *, grace_ms: int) -> None:
        """Start anew as the controller of these unfenced brokers."""
        self._deadline_ms = dict.fromkeys(broker_ids, now_ms + grace_ms)

    def touch(self, broker_id: int, now_ms: int) -> None:
        """The broker has shown life."""
        self._deadline_ms[broker_id] = now_ms + self._session_timeout_ms

    def end(self, broker_id: int) -> None:
        """The broker was fenced."""
        self._deadline_ms.pop(broker_id, None)

    def is_valid(self, broker_id: int, now_ms: int) -> bool:
        """Whether the broker's session stands."""
        return self._deadline_ms.get(broker_id, now_ms) > now_ms

    def expired(self, now_ms: int) -> list[int]:
        """Brokers whose session has run out."""
        return [id_ for id_, deadline_ms in self._deadline_ms.items() if deadline_ms <= now_ms]

    def next_deadline_ms(self) -> int | None:
        """When the next session runs out."""
        return min(self._deadline_ms.values(), default=None)
