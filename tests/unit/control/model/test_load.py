"""What brokers carry: from the assignment, over all registered brokers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.model.load import broker_loads, placement, skew_percent
from tests.unit.control import clusters


def test_loads_count_assigned_replicas_leaders_and_bytes() -> None:
    loads = broker_loads(
        clusters.snapshot(
            brokers=[clusters.broker(1), clusters.broker(2), clusters.broker(3)],
            partitions=[
                clusters.partition("t", 0, [1, 2], isr=[1]),
                clusters.partition("t", 1, [1, 2], in_bytes_per_s=5_000.0),
            ],
            replicas=[
                clusters.replica("t", 0, 1, size_bytes=10),
                clusters.replica("t", 0, 2, size_bytes=20),
                clusters.replica("t", 1, 1, size_bytes=40),
                clusters.replica("t", 1, 2, size_bytes=80),
            ],
        )
    )

    assert loads.replicas.tolist() == [2, 2, 0]
    assert loads.leaders.tolist() == [2, 0, 0]
    assert loads.size_bytes.tolist() == [50, 100, 0]
    assert loads.in_bytes_per_s.tolist() == [6_000, 0, 0]
    assert not loads.is_estimated.any()


def test_a_replica_that_nobody_reported_has_its_leaders_size_as_an_estimate() -> None:
    loads = broker_loads(
        clusters.snapshot(
            brokers=[clusters.broker(1), clusters.broker(2)],
            partitions=[clusters.partition("t", 0, [1, 2], size_bytes=70)],
            replicas=[clusters.replica("t", 0, 1, size_bytes=70)],
        )
    )

    assert loads.size_bytes.tolist() == [70, 70]
    assert loads.is_estimated.tolist() == [False, True]


def test_unknown_sizes_stay_unknown_and_nothing_is_nothing() -> None:
    loads = broker_loads(
        clusters.snapshot(
            brokers=[clusters.broker(1), clusters.broker(2)],
            partitions=[clusters.partition("t", 0, [1], size_bytes=None)],
        )
    )

    assert np.isnan(loads.size_bytes[0])
    assert loads.size_bytes[1] == 0


def test_replicas_on_unregistered_brokers_are_left_out() -> None:
    now = clusters.snapshot(
        brokers=[clusters.broker(2)], partitions=[clusters.partition("t", 0, [9, 2])]
    )

    assert broker_loads(now).replicas.tolist() == [1]
    assert placement(now).broker.tolist() == [9, 2]


def test_skew_counts_a_broker_that_just_joined() -> None:
    assert skew_percent(np.array([60.0, 60.0, 0.0])).tolist() == [50, 50, -100]


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=20))
def test_skews_add_up_to_nothing(values: list[float]) -> None:
    skews = skew_percent(np.array(values))

    assert float(skews.sum()) == pytest.approx(0.0, abs=1e-6)
    assert (skews >= -100.000001).all()
