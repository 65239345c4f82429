"""TLS properties of a listener, and names of clients by their certificates."""

import pytest

from broker.config.errors import ConfigError
from broker.config.tls import ClientAuth, PrincipalRules, TlsConfig

FILES = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "/own.pem",
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "/ca.pem",
}
ALICE = "CN=alice,OU=Ops+L=Bern,O=Example\\, Inc.,C=CH"


def config(change: dict[str, str] | None = None) -> TlsConfig:
    return TlsConfig.from_properties({**FILES, **(change or {})}, "OUTSIDE")


def test_a_listeners_own_value_comes_first() -> None:
    own = {
        "ssl.client.auth": "none",
        "listener.name.outside.ssl.client.auth": "required",
        "listener.name.outside.ssl.keystore.location": "/outside.pem",
        "listener.name.inside.ssl.keystore.location": "/inside.pem",
    }
    found = config(own)
    assert found.client_auth is ClientAuth.REQUIRED
    assert (found.keys.path, found.versions) == ("/outside.pem", ("TLSv1.2", "TLSv1.3"))
    assert found.keys.named == "listener.name.outside.ssl.keystore.location"


def test_keys_may_stand_in_the_properties() -> None:
    written = {
        "ssl.keystore.location": "",
        "ssl.keystore.key": "KEY",
        "ssl.keystore.certificate.chain": "CHAIN",
    }
    assert config(written).keys.text == "KEY\nCHAIN"


@pytest.mark.parametrize(
    ("change", "story"),
    [
        ({"ssl.keystore.location": ""}, "OUTSIDE has no certificate"),
        ({"ssl.keystore.type": "JKS"}, "ssl.keystore.type=JKS: this broker reads PEM"),
        ({"ssl.truststore.type": ""}, "ssl.truststore.type=: this broker reads PEM"),
        ({"ssl.keystore.key": "KEY"}, "exclude each other"),
        ({"ssl.keystore.location": "", "ssl.keystore.key": "KEY"}, "go together"),
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth=maybe"),
        ({"ssl.client.auth": "required", "ssl.truststore.location": ""}, "ssl.truststore.location"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols=TLSv1.1"),
        ({"ssl.enabled.protocols": ","}, "ssl.enabled.protocols"),
        ({"ssl.cipher.suites": "TLS_RSA_WITH_NULL_SHA"}, "leave it out"),
        ({"ssl.principal.mapping.rules": "RULE:(/x/"}, "RULE:\\("),
        ({"ssl.principal.mapping.rules": "nonsense"}, "nonsense"),
        ({"ssl.principal.mapping.rules": "RULE:^CN=(.*?)$/$2/"}, "RULE:"),
    ],
)
def test_what_cannot_be_used_is_refused(change: dict[str, str], story: str) -> None:
    with pytest.raises(ConfigError, match=story):
        config(change)


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", ALICE),
        ("RULE:^CN=(.*?),OU=Ops.*$/$1/", "alice"),
        ("RULE:^CN=(.*?),OU=Ops.*$/$1@ops/U", "ALICE@OPS"),
        ("RULE:^CN=bob.*$/bob/,RULE:^CN=(\\w+),.*$/user-$1/L, DEFAULT", "user-alice"),
        ("RULE:^CN=bob.*$/bob/, DEFAULT", ALICE),
        ("RULE:^CN=bob.*$/bob/", None),
        ("RULE:^.*C=(..)$/a\\/b $1/", "a/b CH"),
        ("RULE:CN=alice/short/", None),
    ],
)
def test_the_first_rule_that_fits_the_whole_name_counts(rules: str, name: str | None) -> None:
    assert PrincipalRules.parse(rules).name_of(ALICE) == name
