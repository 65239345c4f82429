"""Patterns of client metrics subscriptions: whatever a client sends, it is judged."""

import pytest

from broker.protocol.resource_configs import problem_of_subscription


@pytest.mark.parametrize("pattern", ["client_id=app-.*", " client_source_port = 90[0-9]+ ", ""])
def test_patterns_that_kafka_takes(pattern: str) -> None:
    assert problem_of_subscription({"match": pattern}) == ""


@pytest.mark.parametrize(
    "pattern",
    ["nothing=x", "client_id", "client_id=", "client_id=(", "client_id=a=b",
     "client_id=" + "(" * 20_000, "client_id=a{99999999999}"],
)  # fmt: skip
def test_what_is_no_pattern_is_refused_and_raises_nothing(pattern: str) -> None:
    assert "matching pattern" in problem_of_subscription({"match": pattern})
