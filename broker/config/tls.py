"""TLS of a listener, read from Kafka's ``ssl.*`` properties (SslConfigs, BrokerSecurityConfigs).

``listener.name.<name>.ssl.…`` is a listener's own value, ``ssl.…`` that of all others. Key stores
and trust stores are PEM, as files or as text within the property.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from broker.config.errors import ConfigError

VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_TO_PEM: Final = "a PKCS12 store becomes PEM by `openssl pkcs12 -in STORE -out STORE.pem -noenc`"
_REFUSED: Final = {
    "ssl.cipher.suites": "suites are those of the OpenSSL that Python has",
    "ssl.engine.factory.class": "this broker loads no classes",
    "ssl.provider": "the provider is the OpenSSL that Python has",
}
_RULE: Final = re.compile(
    r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,\s*|$)"
)


_READ: Final = frozenset(
    f"ssl.{name}"
    for name in (
        *("keystore.type", "keystore.location", "keystore.password", "keystore.key"),
        *("keystore.certificate.chain", "key.password", "truststore.type", "truststore.location"),
        *("truststore.certificates", "client.auth", "enabled.protocols"),
        *("endpoint.identification.algorithm", "principal.mapping.rules"),
    )
)


def is_read_by_tls(name: str) -> bool:
    """Whether a property has its effect here, for all listeners or for one."""
    return re.sub(r"^listener\.name\.[^.]+\.", "", name) in _READ


class ClientAuth(Enum):
    """Whether clients show certificates (``ssl.client.auth``)."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class PemStore:
    """Where PEM comes from: a file, or the property itself."""

    named: str
    """The property, for messages."""
    path: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """Keys, trust and versions of one listener, and of brokers that connect to it."""

    keys: PemStore
    """Private key and certificate chain."""
    key_password: str | None
    trusted: PemStore | None
    """None: what the system trusts, for connections to others; nobody, for clients."""
    client_auth: ClientAuth
    versions: tuple[str, ...]
    checks_host: bool
    """Whether a broker that connects wants the name it dialled in the certificate."""
    principals: "PrincipalRules"

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], listener: str) -> "TlsConfig":
        """Read the properties of one listener.

        :raises ConfigError: a value that cannot be used, or one that lacks.
        """
        read = _Reader(properties, listener)
        for name, why in _REFUSED.items():
            if read(name):
                raise ConfigError(f"{read.named(name)}: {why}; leave it out")
        auth = read("ssl.client.auth", "none").lower()
        if auth not in {it.value for it in ClientAuth}:
            raise ConfigError(f"{read.named('ssl.client.auth')}: write none, requested or required")
        trusted = read.store("truststore", ("truststore.certificates",))
        if auth != "none" and trusted is None:
            raise ConfigError(
                f"{read.named('ssl.client.auth')}: whose certificates are trusted is not said; add "
                "ssl.truststore.location=FILE"
            )
        keys = read.store("keystore", ("keystore.key", "keystore.certificate.chain"))
        if keys is None:
            raise ConfigError(
                f"the listener {listener} has no certificate; add ssl.keystore.location=FILE, in "
                "PEM, with its private key and its chain"
            )
        return cls(
            keys=keys,
            key_password=read("ssl.key.password") or read("ssl.keystore.password") or None,
            trusted=trusted,
            client_auth=ClientAuth(auth),
            versions=_versions(read),
            checks_host=read("ssl.endpoint.identification.algorithm", "https").lower() == "https",
            principals=PrincipalRules.parse(read("ssl.principal.mapping.rules", "DEFAULT")),
        )


class _Reader:
    """Values of one listener."""

    def __init__(self, properties: Mapping[str, str], listener: str) -> None:
        self._properties = properties
        self._prefix = f"listener.name.{listener.lower()}."

    def __call__(self, name: str, default: str = "") -> str:
        return self._properties.get(self.key(name), default).strip()

    def key(self, name: str) -> str:
        """The property as it is written."""
        own = self._prefix + name
        return own if own in self._properties else name

    def named(self, name: str) -> str:
        """With its value, for messages."""
        return f"{self.key(name)}={self(name)}"

    def store(self, kind: str, texts: tuple[str, ...]) -> PemStore | None:
        """A key store or trust store; None where none is named."""
        location = self(f"ssl.{kind}.location")
        written = [self(f"ssl.{name}") for name in texts]
        if location and any(written):
            raise ConfigError(
                f"{self.key(f'ssl.{kind}.location')} and {self.key(f'ssl.{texts[0]}')} exclude "
                "each other; write one of them"
            )
        if not location and not any(written):
            return None
        default = "PEM" if any(written) else "JKS"
        if self(f"ssl.{kind}.type", default).upper() != "PEM":
            key, given = self.key(f"ssl.{kind}.type"), self(f"ssl.{kind}.type", default)
            raise ConfigError(f"{key}={given}: this broker reads PEM; {_TO_PEM}")
        if location:
            return PemStore(named=self.key(f"ssl.{kind}.location"), path=location)
        if not all(written):
            names = " and ".join(f"ssl.{name}" for name in texts)
            raise ConfigError(f"{names} go together; write both")
        return PemStore(named=self.key(f"ssl.{texts[0]}"), text="\n".join(written))


def _versions(read: _Reader) -> tuple[str, ...]:
    text = read("ssl.enabled.protocols", ",".join(VERSIONS))
    asked = tuple(part.strip() for part in text.split(",") if part.strip())
    if not asked or not set(asked) <= set(VERSIONS):
        raise ConfigError(
            f"{read.named('ssl.enabled.protocols')}: write {' or '.join(VERSIONS)}, or both"
        )
    return asked


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalRules:
    """Names of clients by their certificates (SslPrincipalMapper): the first rule that fits."""

    rules: tuple[tuple[re.Pattern[str], str, str] | None, ...]
    """Pattern, replacement and case of each; None takes the name as it is."""

    @classmethod
    def parse(cls, text: str) -> "PrincipalRules":
        """Read ``RULE:pattern/replacement/[LU]`` and ``DEFAULT``, divided by commas.

        :raises ConfigError: text that is no rule.
        """
        rules: list[tuple[re.Pattern[str], str, str] | None] = []
        at = 0
        while at < len(text):
            found = _RULE.match(text, at)
            if found is None or found.end() == at:
                raise ConfigError(
                    f"ssl.principal.mapping.rules: {text[at:]} is neither DEFAULT nor "
                    "RULE:pattern/replacement/, with L or U behind it"
                )
            at = found.end()
            rules.append(None if found[1] else _rule(found))
        return cls(rules=tuple(rules))

    def name_of(self, distinguished_name: str) -> str | None:
        """The principal's name; None where no rule fits, so that nobody is let in."""
        for rule in self.rules:
            if rule is None:
                return distinguished_name
            pattern, replacement, case = rule
            found = pattern.fullmatch(distinguished_name)
            if found is not None:
                name = found.expand(replacement)
                return {"L": name.lower(), "U": name.upper()}.get(case, name)
        return None


def _rule(found: re.Match[str]) -> tuple[re.Pattern[str], str, str]:
    pattern, replacement = (found[place].replace("\\/", "/") for place in (2, 3))
    try:
        compiled = re.compile(pattern)
        # Java's $1 is Python's \\g<1>.
        python = re.sub(r"\$(\d)", r"\\g<\1>", replacement.replace("\\", "\\\\"))
        re.sub(compiled, python, "")
    except (re.error, IndexError) as error:
        raise ConfigError(f"ssl.principal.mapping.rules: RULE:{pattern}: {error}") from error
    return compiled, python, found[4]
