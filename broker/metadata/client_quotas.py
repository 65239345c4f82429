"""How much clients may do, and for how long those who did more are not heard (Kafka's
ClientQuotaManager).

Each kind of quota measures for itself, and only while some quota of its kind is set: without one
nothing is counted.
"""

from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from broker.clock import Clock, SystemClock
from broker.metadata.quota_rates import TokenBucket, WindowedRate, Windows
from broker.metadata.quotas import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Measured,
    QuotaLimits,
    Quotas,
)
from broker.protocol.request_context import ITSELF, RequestContext

MEASURED_MAX: Final = 10_000
"""Clients that one kind of quota keeps account of, some 10 MiB of them; beyond that those are
forgotten who have not been heard for longest."""


class _Meter(Protocol):
    def __init__(self, windows: Windows) -> None: ...
    def is_forgotten(self, now_ms: int) -> bool: ...


NS_PER_PERCENT: Final = 10_000_000
"""Of a second."""

M = TypeVar("M", bound=_Meter)


class _Metered(Generic[M]):
    """Meters and limits of clients, for one kind of quota."""

    def __init__(
        self,
        key: str,
        meter: type[M],
        *,
        quotas: Callable[[], Quotas],
        windows: Windows,
        clock: Clock,
    ) -> None:
        self._key = key
        self._meter = meter
        self._quotas = quotas
        self.windows = windows
        self.clock = clock
        self._seen: Quotas = {}
        self._limits = QuotaLimits({}, key)
        self._meters: dict[Measured, M] = {}
        self._found: dict[Measured, tuple[M, float] | None] = {}

    @property
    def is_set(self) -> bool:
        """Whether any client has a quota of this kind."""
        quotas = self._quotas()
        if quotas is not self._seen:
            self._seen, self._limits = quotas, QuotaLimits(quotas, self._key)
            self._found.clear()
        return bool(self._limits)

    def find(self, context: RequestContext) -> tuple[M, float] | None:
        """The meter and the limit of a client; None where it has no quota. The node itself has
        none."""
        if not self.is_set or context.principal is ITSELF:
            return None
        client = Measured(context.principal.name, context.client_id or "")
        if client not in self._found:
            measured = self._limits.measured(*client)
            self._keep(client, measured, self._limits.limit(measured))
        return self._found[client]

    def find_address(self, address: str) -> tuple[M, float] | None:
        """The meter and the limit of an address."""
        if not self.is_set:
            return None
        client = Measured(address, "")
        if client not in self._found:
            self._keep(client, client, self._limits.of_address(address))
        return self._found[client]

    def _keep(self, client: Measured, measured: Measured, limit: float | None) -> None:
        self._make_room()
        self._found[client] = None if limit is None else (self._meter_of(measured), limit)

    def _meter_of(self, measured: Measured) -> M:
        # It goes to the end: the first ones are those that were asked for longest ago.
        meter = self._meters.pop(measured, None) or self._meter(self.windows)
        self._meters[measured] = meter
        return meter

    def _make_room(self) -> None:
        if max(len(self._found), len(self._meters)) < MEASURED_MAX:
            return
        self._found.clear()
        now_ms = self.clock.monotonic_ms()
        kept = [(key, it) for key, it in self._meters.items() if not it.is_forgotten(now_ms)]
        self._meters = dict(kept[-MEASURED_MAX // 2 :])


class RateQuota:
    """A quota of bytes, or of time, by the second."""

    def __init__(self, metered: _Metered[WindowedRate]) -> None:
        self._metered = metered

    @property
    def is_set(self) -> bool:
        """Whether any client has one."""
        return self._metered.is_set

    def record(self, context: RequestContext, amount: float) -> int:
        """For how many ms the client is not heard, after it has used so much."""
        found = self._metered.find(context)
        if found is None:
            return 0
        rate, limit = found
        now_ms = self._metered.clock.monotonic_ms()
        rate.record(amount, now_ms)
        return rate.throttle_ms(limit, now_ms)

    def take_back(self, context: RequestContext, amount: float) -> None:
        """The client did not use so much after all."""
        found = self._metered.find(context)
        if found is not None:
            found[0].record(-amount, self._metered.clock.monotonic_ms())

    def largest(self, context: RequestContext) -> float | None:
        """More than that in one request is throttled in any case; None: there is no quota."""
        found, windows = self._metered.find(context), self._metered.windows
        if found is None:
            return None
        return found[1] * (windows.span_ms - windows.size_ms) / 1_000


class ConnectionQuota:
    """A quota of new connections from an address (KIP-612)."""

    def __init__(self, metered: _Metered[WindowedRate]) -> None:
        self._metered = metered

    def take(self, address: str) -> int:
        """For how many ms a connection is kept waiting before it is refused; 0: it may come."""
        found = self._metered.find_address(address)
        if found is None:
            return 0
        rate, limit = found
        now_ms = self._metered.clock.monotonic_ms()
        rate.record(1, now_ms)
        wait_ms = rate.throttle_ms(limit, now_ms)
        if wait_ms:
            rate.record(-1, now_ms)
        return min(wait_ms, self._metered.windows.size_ms)


class MutationQuota:
    """A quota of partitions that are created or deleted (KIP-599)."""

    def __init__(self, metered: _Metered[TokenBucket]) -> None:
        self._metered = metered

    def take(self, context: RequestContext, mutations: int, *, is_strict: bool) -> int:
        """For how many ms the client has to wait; a strict quota then takes nothing."""
        found = self._metered.find(context)
        if found is None:
            return 0
        bucket, limit = found
        now_ms = self._metered.clock.monotonic_ms()
        owed_ms = bucket.throttle_ms(limit, now_ms) if is_strict else 0
        if owed_ms:
            return owed_ms
        bucket.take(mutations, limit, now_ms)
        return 0 if is_strict else bucket.throttle_ms(limit, now_ms)


def _no_quotas() -> Quotas:
    return _NONE


_NONE: Final[Quotas] = {}


class ClientQuotas:
    """All kinds of one node."""

    def __init__(
        self,
        quotas: Callable[[], Quotas] = _no_quotas,
        *,
        clock: Clock | None = None,
        windows: Windows | None = None,
        mutation_windows: Windows | None = None,
    ) -> None:
        told = clock or SystemClock()
        chosen = windows or Windows()

        def rate(key: str) -> _Metered[WindowedRate]:
            return _Metered(key, WindowedRate, quotas=quotas, windows=chosen, clock=told)

        self.produce = RateQuota(rate(PRODUCER_BYTE_RATE))
        self.fetch = RateQuota(rate(CONSUMER_BYTE_RATE))
        self._requests = RateQuota(rate(REQUEST_PERCENTAGE))
        self.connections = ConnectionQuota(rate(CONNECTION_CREATION_RATE))
        self._request_ms_max = chosen.size_ms
        self._quotas = quotas
        self.mutations = MutationQuota(
            _Metered(
                CONTROLLER_MUTATION_RATE,
                TokenBucket,
                quotas=quotas,
                windows=mutation_windows or Windows(),
                clock=told,
            )
        )

    @property
    def is_enabled(self) -> bool:
        """Whether there is any quota."""
        return bool(self._quotas())

    @property
    def times_requests(self) -> bool:
        """Whether any client has a quota of the broker's time."""
        return self._requests.is_set

    def record_request(self, context: RequestContext, spent_ns: int) -> int:
        """For how many ms a client is not heard that had so much of the broker's time; not for
        longer than a window, as in Kafka."""
        if not spent_ns:
            return 0
        percent = spent_ns / NS_PER_PERCENT
        return min(self._requests.record(context, percent), self._request_ms_max)
