"""SCRAM: the examples of the RFCs, and messages that are none of it or not of this exchange."""

import base64

import pytest

from broker.protocol.scram import (
    ClientFirst,
    ScramClient,
    ScramCredential,
    ScramError,
    ScramExchange,
    ScramMechanism,
    salted_password,
)

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CHALLENGE = f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
FINAL = f"c=biws,r={NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
"""RFC 7677, section 3."""


def credential(mechanism: ScramMechanism, password: str) -> ScramCredential:
    salted = salted_password(mechanism, password, salt=SALT, iterations=4_096)
    return ScramCredential.of(mechanism, salted, salt=SALT, iterations=4_096)


def exchange(first: bytes = FIRST) -> ScramExchange:
    kind = ScramMechanism.SHA_256
    more = NONCE.removeprefix("rOprNGfwEbeRWgbNEkqO")
    return ScramExchange(kind, ClientFirst.parse(first), credential(kind, "pencil"), more)


def test_the_example_of_the_standard_from_both_sides() -> None:
    server = exchange()
    assert server.challenge == CHALLENGE
    assert server.finish(FINAL) == SIGNATURE
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert client.first() == FIRST
    assert client.answer(CHALLENGE) == FINAL
    client.check(SIGNATURE)


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("name", ["alice", "a=b,c=2C", "="])
def test_a_client_logs_in_whatever_it_is_called(mechanism: ScramMechanism, name: str) -> None:
    client = ScramClient(mechanism, name, "pässword", "abc")
    first = ClientFirst.parse(client.first())
    assert first.name == name
    server = ScramExchange(mechanism, first, credential(mechanism, "pässword"), "def")
    client.check(server.finish(client.answer(server.challenge)))
    other = ScramExchange(mechanism, first, credential(mechanism, "password"), "def")
    with pytest.raises(ScramError, match="proof"):
        other.finish(client.answer(other.challenge))


@pytest.mark.parametrize(
    "first",
    [b"", b"n,,", b"y,,n=user,r=abc", b"p=tls-unique,,n=user,r=abc", b"n,,n=user", b"n,,n=,r=abc",
     b"n,,n=us=er,r=abc", b"n,,n=user,r=", b"n,,n=user,r=a b", b"\xff", b"n,,r=abc,n=user"],
)  # fmt: skip
def test_a_first_message_that_is_none_or_binds_a_channel_is_refused(first: bytes) -> None:
    with pytest.raises(ScramError):
        ClientFirst.parse(first)


def test_a_first_message_may_say_more() -> None:
    found = ClientFirst.parse(b"n,a=boss,m=x,n=user,r=abc,tokenauth=true,other=1")
    assert (found.acts_as, found.name, found.is_with_token) == ("boss", "user", True)
    assert not ClientFirst.parse(b"n,,n=user,r=abc,other=tokenauth").is_with_token


@pytest.mark.parametrize(
    "final",
    [b"", FINAL[:-1], FINAL.replace(b"c=biws", b"c=eSws"), FINAL.replace(b"r=rO", b"r=xO"),
     FINAL.replace(b"p=dH", b"p=eH"), FINAL.replace(b"p=dHzb", b"p="),
     FINAL.replace(b"c=biws", b"c=cD10bHMtdW5pcXVlLCw="), SIGNATURE],
)  # fmt: skip
def test_a_last_message_of_another_exchange_or_channel_lets_nobody_in(final: bytes) -> None:
    with pytest.raises(ScramError):
        exchange().finish(final)


@pytest.mark.parametrize(
    "challenge",
    [b"", CHALLENGE.replace(b"r=rO", b"r=xO"), CHALLENGE.replace(b"i=4096", b"i=4095"),
     CHALLENGE.replace(b"i=4096", b"i=16385"), CHALLENGE.replace(b"i=4096", b"i=999999999999"),
     CHALLENGE.replace(b"gQ==", b"gQ=")],
)  # fmt: skip
def test_a_client_works_for_no_other_challenge(challenge: bytes) -> None:
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    with pytest.raises(ScramError):
        client.answer(challenge)


@pytest.mark.parametrize("last", [b"", b"v=", b"e=other-error", SIGNATURE.replace(b"6r", b"7r")])
def test_a_server_that_does_not_know_the_user_is_not_trusted(last: bytes) -> None:
    client = ScramClient(ScramMechanism.SHA_256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    client.answer(CHALLENGE)
    with pytest.raises(ScramError):
        client.check(last)


def test_no_key_is_shown() -> None:
    assert "salt" not in repr(credential(ScramMechanism.SHA_512, "pencil"))
