"""Listeners by Kafka's rules: names, protocols, addresses, and which are refused and why."""

import pytest

from broker.config.errors import ConfigError
from broker.config.listeners import Listeners, parse_listeners

TWO = {
    "listeners": "INSIDE://0.0.0.0:9092,OUTSIDE://0.0.0.0:9093,CONTROLLER://127.0.0.1:19092",
    "advertised.listeners": "OUTSIDE://kafka.example:39093,INSIDE://broker-1:9092",
    "listener.security.protocol.map": "inside:PLAINTEXT, OUTSIDE:plaintext",
    "inter.broker.listener.name": "Inside",
}
LOCAL = {
    "listeners": "PLAINTEXT://h:1,INSIDE://h:2",
    "advertised.listeners": "",
    "inter.broker.listener.name": "",
}


def parsed(change: dict[str, str] | None = None, *, is_controller: bool = True) -> Listeners:
    return parse_listeners(TWO | (change or {}), is_controller=is_controller)


def addresses(change: dict[str, str] | None = None) -> list[str]:
    """Advertised ones."""
    return [f"{it.name} {it.host}:{it.port}" for it in parsed(change).advertised]


def test_each_listener_has_its_own_address_and_its_advertised_one() -> None:
    found = parsed()
    assert [(it.name, it.host, it.port) for it in found.clients] == [
        ("INSIDE", "0.0.0.0", 9092),
        ("OUTSIDE", "0.0.0.0", 9093),
    ]
    assert addresses() == ["INSIDE broker-1:9092", "OUTSIDE kafka.example:39093"]
    assert found.among_brokers.host == "broker-1"
    assert found.controller is not None
    assert (found.controller.name, found.controller.port) == ("CONTROLLER", 19092)
    assert parsed(is_controller=False).controller is None


def test_a_listener_may_be_bound_and_not_told() -> None:
    assert addresses({"advertised.listeners": "INSIDE://broker-1:9092"}) == ["INSIDE broker-1:9092"]


def test_controllers_may_have_another_listener() -> None:
    found = parsed({
        "listeners": "INSIDE://h:1,VOTERS://h:2",
        "advertised.listeners": "",
        "controller.listener.names": "VOTERS",
    })  # fmt: skip
    assert found.controller is not None
    assert (found.controller.name, found.controller.port) == ("VOTERS", 2)
    assert [it.name for it in found.clients] == ["INSIDE"]


def test_one_listener_of_any_name_serves_brokers_as_well() -> None:
    change = {**LOCAL, "listeners": "EVERYBODY://h:1"}
    found = parsed({**change, "listener.security.protocol.map": "EVERYBODY:PLAINTEXT"})
    assert found.inter_broker == "EVERYBODY"


def test_the_protocol_of_brokers_names_their_listener() -> None:
    named = parsed({**LOCAL, "security.inter.broker.protocol": "PLAINTEXT"})
    assert named.inter_broker == parsed(LOCAL).inter_broker == "PLAINTEXT"


def test_addresses_of_two_families_may_share_a_port() -> None:
    change = {"listeners": "INSIDE://127.0.0.1:9092,OUTSIDE://[::1]:9092"}
    assert len(parsed({**change, "advertised.listeners": "INSIDE://broker-1:9092"}).clients) == 2


@pytest.mark.parametrize(
    ("change", "story"),
    [
        ({"listeners": ""}, "listeners is missing"),
        ({"listeners": "CONTROLLER://h:1"}, "none for clients"),
        ({"listeners": "INSIDE://h:1,inside://h:2"}, "INSIDE twice"),
        ({"listeners": "INSIDE://h:1,OUTSIDE://h:1"}, "want port 1"),
        ({"listeners": "INSIDE://:1,OUTSIDE://h:1"}, "want port 1"),
        ({"listeners": "LAN://h:1"}, "LAN has no security protocol"),
        ({"listener.security.protocol.map": "INSIDE"}, "INSIDE is not NAME:PROTOCOL"),
        ({"listener.security.protocol.map": "INSIDE:TLS"}, "INSIDE:TLS is not NAME:PROTOCOL"),
        ({"advertised.listeners": "INSIDE://0.0.0.0:1"}, "advertised.listeners=INSIDE://HOST"),
        ({"advertised.listeners": "PLAINTEXT://h:1"}, "names PLAINTEXT"),
        ({"advertised.listeners": "CONTROLLER://h:1"}, "names CONTROLLER"),
        ({"advertised.listeners": "OUTSIDE://h:1"}, "INSIDE is not advertised"),
        ({"advertised.listeners": ""}, "advertised.listeners=INSIDE://HOST"),
        ({"inter.broker.listener.name": ""}, "PLAINTEXT is not advertised"),
        ({"inter.broker.listener.name": "LAN"}, "LAN is not advertised"),
        ({"security.inter.broker.protocol": "PLAINTEXT"}, "exclude each other"),
    ],
)
def test_what_cannot_be_used_is_refused(change: dict[str, str], story: str) -> None:
    with pytest.raises(ConfigError, match=story):
        parsed(change)
