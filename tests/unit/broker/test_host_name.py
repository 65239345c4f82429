"""Hosts that a resolver takes, and texts that would make it raise."""

from typing import Final

import pytest

from broker.host_name import is_host_name

HOSTS: Final = (
    *("localhost", "kafka-1.prod", "kafka1.", "my_host", "ü.example", "10.0.0.1"),
    *("::1", "fe80::1%eth0.100", "fe80::1%br-12"),
)
OTHERS: Final = (
    *("", "a..b", ".a", "x" * 64, "a b", "a\0b", "a\x7f", "\ud800"),
    *("a/b", "u@h", "h:9092", "[::1]", "::1\n"),
)


@pytest.mark.parametrize("text", [*HOSTS, *OTHERS])
def test_a_host_is_told_from_other_texts(text: str) -> None:
    assert is_host_name(text) is (text in HOSTS)
