"""Which quota binds a client, and what the measures of quotas promise."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.metadata.client_quotas import ClientQuotas
from broker.metadata.quota_rates import TokenBucket, WindowedRate, Windows
from broker.metadata.quotas import Measured, QuotaLimits, quota_entity
from broker.protocol.request_context import ITSELF, Principal, RequestContext
from tests.support.cases import examples

KEY = "producer_byte_rate"


class StoodStill:
    """A clock."""

    def monotonic_ms(self) -> int:
        return 1_000_000

    def wall_ms(self) -> int:
        return 1_000_000


ORDER: list[tuple[dict[str, str | None], Measured]] = [
    ({"user": "u", "client-id": "c"}, Measured("u", "c")),
    ({"user": "u", "client-id": None}, Measured("u", "c")),
    ({"user": "u"}, Measured("u", "")),
    ({"user": None, "client-id": "c"}, Measured("u", "c")),
    ({"user": None, "client-id": None}, Measured("u", "c")),
    ({"user": None}, Measured("u", "")),
    ({"client-id": "c"}, Measured("", "c")),
    ({"client-id": None}, Measured("", "c")),
]
"""Kafka's order of precedence, and with whom such a client is measured."""
OTHERS: list[dict[str, str | None]] = [
    {"user": "v"},
    {"client-id": "d"},
    {"user": "v", "client-id": "c"},
    {"ip": "10.0.0.1"},
]


def quotas_of(entities: list[dict[str, str | None]]) -> dict[Any, dict[str, float]]:
    return {quota_entity(it.items()): {KEY: float(n)} for n, it in enumerate(entities, 1)}


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_first_quota_of_kafkas_order_binds(first: int) -> None:
    known = [entity for entity, _ in ORDER[first:]]
    limits = QuotaLimits(quotas_of([*known, *OTHERS]), KEY)
    measured = limits.measured("u", "c")
    assert measured == ORDER[first][1]
    assert limits.limit(measured) == 1.0


def test_others_quotas_bind_nobody() -> None:
    limits = QuotaLimits(quotas_of(OTHERS), KEY)
    assert limits.limit(limits.measured("u", "c")) is None
    assert not QuotaLimits(quotas_of(OTHERS), "consumer_byte_rate")


def test_a_client_without_a_name_has_quotas_of_users_alone() -> None:
    limits = QuotaLimits(quotas_of([{"user": None, "client-id": None}, {"user": None}]), KEY)
    assert limits.limit(limits.measured("u", "")) == 2.0
    assert limits.limit(limits.measured("", "")) is None


def test_an_address_has_its_own_quota_or_the_default() -> None:
    limits = QuotaLimits(quotas_of([{"ip": "10.0.0.1"}, {"ip": None}]), KEY)
    assert (limits.of_address("10.0.0.1"), limits.of_address("10.0.0.2")) == (1.0, 2.0)
    assert QuotaLimits({}, KEY).of_address("10.0.0.1") is None


WINDOWS = st.builds(Windows, count=st.integers(1, 12), size_ms=st.sampled_from([100, 1_000]))
STEPS = st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 100_000)), min_size=1, max_size=40)
LIMITS = st.sampled_from([1.0, 12.5, 1_000.0, 50_000.0])


@given(windows=WINDOWS, steps=STEPS)
def test_a_rate_is_what_came_lately_over_whole_windows(
    windows: Windows, steps: list[tuple[int, int]]
) -> None:
    rate, now_ms, came = WindowedRate(windows), 0, list[tuple[int, int]]()
    for pause_ms, amount in steps:
        now_ms += pause_ms
        rate.record(amount, now_ms)
        came.append((now_ms, amount))
        total = rate.per_second(now_ms) * rate.span_ms(now_ms) / 1_000
        span_ms, whole_ms = windows.span_ms, (windows.count - 1) * windows.size_ms
        surely = sum(n for at, n in came if now_ms - at < span_ms)
        at_most = sum(n for at, n in came if now_ms - at < span_ms + windows.size_ms)
        assert surely - 1e-6 <= total <= at_most + 1e-6
        assert max(1, whole_ms) <= rate.span_ms(now_ms) <= span_ms + windows.size_ms


@given(windows=WINDOWS, limit=LIMITS, steps=STEPS)
def test_who_waits_out_each_throttle_has_at_most_twice_the_quota(
    windows: Windows, limit: float, steps: list[tuple[int, int]]
) -> None:
    """Twice, since Kafka forgets a burst when all windows are over, before it is paid off."""
    rate, now_ms, total = WindowedRate(windows), 0, 0
    for pause_ms, amount in steps:
        now_ms += pause_ms
        allowed = 2 * limit * (now_ms + windows.span_ms) / 1_000
        assert total <= allowed * 1.001 + limit
        rate.record(amount, now_ms)
        total += amount
        now_ms += rate.throttle_ms(limit, now_ms)


@given(windows=WINDOWS, amount=st.integers(1, 100_000), now_ms=st.integers(0, 10**9))
def test_a_first_burst_may_fill_all_windows(windows: Windows, amount: int, now_ms: int) -> None:
    rate = WindowedRate(windows)
    rate.record(amount, now_ms)
    exact = amount * 1_000 / max(1, (windows.count - 1) * windows.size_ms)
    assert rate.throttle_ms(exact * 1.001, now_ms) == 0
    # In half of the rate that it had, it waits as long again as it was measured over.
    assert abs(rate.throttle_ms(exact / 2, now_ms) - rate.span_ms(now_ms)) <= 1


def test_what_is_taken_back_never_was() -> None:
    rate = WindowedRate(Windows())
    rate.record(5_000, 10)
    rate.record(90_000, 20)
    rate.record(-90_000, 20)
    assert rate.throttle_ms(500, 20) == 0
    assert rate.is_forgotten(11_020)


@given(windows=WINDOWS, limit=LIMITS, steps=STEPS)
def test_a_bucket_gives_its_burst_and_what_fills_it(
    windows: Windows, limit: float, steps: list[tuple[int, int]]
) -> None:
    bucket, now_ms, total = TokenBucket(windows), 10**9, 0
    begun_ms = now_ms
    for pause_ms, count in steps:
        now_ms += pause_ms + bucket.throttle_ms(limit, now_ms)
        given_out = limit * (now_ms - begun_ms + windows.span_ms) / 1_000
        assert total <= given_out + limit * 0.002
        bucket.take(count, limit, now_ms)
        total += count


@examples(50)
@given(limit=LIMITS, excess=st.integers(1, 1_000))
def test_a_bucket_is_owed_exactly_what_was_taken_beyond_it(limit: float, excess: int) -> None:
    bucket, windows = TokenBucket(Windows()), Windows()
    bucket.take(limit * windows.span_ms / 1_000, limit, 5)
    assert bucket.throttle_ms(limit, 5) == 0
    bucket.take(excess, limit, 5)
    assert abs(bucket.throttle_ms(limit, 5) - excess / limit * 1_000) <= 1


def context(user: str, client_id: str | None = "c") -> RequestContext:
    principal = Principal(type="User", name=user)
    return RequestContext(principal=principal, listener_name="L", client_id=client_id)


def test_clients_of_one_user_share_its_quota_and_others_do_not() -> None:
    quotas, clock = quotas_of([{"user": None}]), StoodStill()
    told = ClientQuotas(lambda: quotas, clock=clock)
    assert told.produce.record(context("u", "a"), 10) == 0
    assert told.produce.record(context("u", "b"), 10) == 10_000
    assert told.produce.record(context("v", "b"), 10) == 0


def test_a_quota_that_is_altered_or_removed_counts_at_once() -> None:
    quotas, clock = quotas_of([{"user": "u"}]), StoodStill()
    told = ClientQuotas(lambda: quotas, clock=clock)
    assert told.produce.record(context("u"), 20) == 10_000
    quotas = {quota_entity([("user", "u")]): {KEY: 100.0}}
    assert told.produce.record(context("u"), 20) == 0
    quotas = {}
    assert (told.produce.record(context("u"), 10**9), told.produce.is_set) == (0, False)


def test_the_node_itself_has_no_quota() -> None:
    quotas = {quota_entity([("user", None)]): {"controller_mutation_rate": 1.0}}
    told = ClientQuotas(lambda: quotas, clock=StoodStill())
    own = RequestContext(principal=ITSELF, listener_name="L")
    assert [told.mutations.take(own, 100, is_strict=True) for _ in range(2)] == [0, 0]
    others = [told.mutations.take(context("u"), 100, is_strict=True) for _ in range(2)]
    assert others == [0, 89_000]


def test_many_clients_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.metadata.client_quotas.MEASURED_MAX", 100)
    quotas, clock = quotas_of([{"client-id": None}]), StoodStill()
    told = ClientQuotas(lambda: quotas, clock=clock)
    for number in itertools.islice(itertools.count(), 1_000):
        told.produce.record(context("u", f"c{number}"), 1)
    metered: Any = told.produce._metered
    assert len(metered._meters) <= 100
    assert len(metered._found) <= 100


def test_an_address_is_known_however_it_is_written() -> None:
    limits = QuotaLimits(quotas_of([{"ip": "2001:DB8:0::1"}, {"ip": "a-host"}]), KEY)
    assert (limits.of_address("2001:db8::1"), limits.of_address("10.0.0.1")) == (1.0, None)


def test_refused_connections_do_not_count() -> None:
    quotas = {quota_entity([("ip", None)]): {"connection_creation_rate": 1.0}}
    told = ClientQuotas(lambda: quotas, clock=StoodStill())
    waits = [told.connections.take("10.0.0.1") for _ in range(13)]
    assert waits == [0] * 10 + [1_000] * 3
    assert told.connections.take("10.0.0.2") == 0
