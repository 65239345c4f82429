"""How to reach clusters that are not the bundled one: TLS and SASL, as settings name them.

A connection comes from the settings tree, or from a client properties file as Kafka's own tools
take with ``--command-config``; what the tree says wins. Secrets are never logged or shown.
"""

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from broker.named_file import check_readable, read_first_line, read_text
from control.kafka.connection.oauth import (
    ClientCredentials,
    Token,
    token_of_credentials,
    token_of_file,
)
from control.kafka.connection.settings import KafkaSettings, RegistrySettings

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]

_FROM_PROPERTIES: Final = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.oauthbearer.token.endpoint.url": "oauth_token_url",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.key.password": "ssl_key_password",
    "request.timeout.ms": "request_timeout_ms",
}
_TRUSTED_BY_ALL: Final = "SSL_CERT_FILE"
_STORES: Final = ("ssl.truststore", "ssl.keystore")
_JAAS_OPTION: Final = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;]+))")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_FROM_JAAS: Final = {
    "username": "username",
    "password": "password",
    "clientId": "oauth_client_id",
    "clientSecret": "oauth_client_secret",
    "scope": "oauth_scope",
}


def _readable(path: Path) -> Path:
    check_readable(path)
    return path


def _with_secret(path: Path) -> Path:
    read_first_line(path)
    return path


PemFile = Annotated[Path, AfterValidator(_readable)]
SecretFile = Annotated[Path, AfterValidator(_with_secret)]
"""Its first line is the secret."""


class ConnectionSettings(BaseModel):
    """TLS and SASL of one cluster. Files are PEM."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    config_file: Path | None = None
    """A client properties file of Kafka's own tools."""
    security_protocol: Protocol = "PLAINTEXT"
    sasl_mechanism: Mechanism = "PLAIN"
    username: str | None = None
    password: SecretStr | None = None
    password_file: SecretFile | None = None
    ssl_cafile: PemFile | None = None
    ssl_certfile: PemFile | None = None
    """Client certificate; may hold the key as well."""
    ssl_keyfile: PemFile | None = None
    ssl_key_password: SecretStr | None = None
    ssl_check_hostname: bool = True
    sasl_kerberos_service_name: str = "kafka"
    sasl_kerberos_domain_name: str | None = None
    oauth_token_file: SecretFile | None = None
    oauth_token_url: str | None = None
    oauth_client_id: str | None = None
    oauth_client_secret: SecretStr | None = None
    oauth_scope: str | None = None
    request_timeout_ms: int = Field(default=15_000, ge=100)
    connect_timeout_ms: int = Field(default=3_000, ge=100)

    @model_validator(mode="before")
    @classmethod
    def _lay_over_file(cls, given: Any) -> Any:
        """Values of the properties file lie under those that were given."""
        file = given.get("config_file") if isinstance(given, dict) else None
        if not isinstance(file, str | Path):
            return given
        return {**read_client_properties(Path(file)), **given}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.security_protocol.startswith("SASL"):
            self._check_sasl()
        return self

    def _check_sasl(self) -> None:
        mechanism = self.sasl_mechanism
        if mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            if self.username is None or (self.password is None and self.password_file is None):
                raise ValueError(f"{mechanism} needs username and password (or password_file)")
        elif mechanism == "GSSAPI" and find_spec("gssapi") is None:
            raise ValueError(
                "GSSAPI needs the Python package gssapi: install partiscope[kerberos], "
                "or in a checkout type `uv sync --inexact --extra kerberos`"
            )
        elif mechanism == "OAUTHBEARER" and self._token() is None:
            raise ValueError(
                "OAUTHBEARER needs oauth_token_file, or oauth_token_url with oauth_client_id and "
                "oauth_client_secret"
            )

    def to_kafka(self, bootstrap: str) -> KafkaSettings:
        """The connection for the cluster at ``bootstrap``.

        Raises:
            ValueError: a file cannot be read, or the address is none.
        """
        settings = KafkaSettings(
            bootstrap=bootstrap,
            request_timeout_ms=self.request_timeout_ms,
            connect_timeout_ms=self.connect_timeout_ms,
            security_protocol=self.security_protocol,
            ssl_context=self._ssl_context() if "SSL" in self.security_protocol else None,
            sasl_mechanism=self.sasl_mechanism,
            sasl_username=self.username,
            sasl_password=self._password(),
            sasl_kerberos_service_name=self.sasl_kerberos_service_name,
            sasl_kerberos_domain_name=self.sasl_kerberos_domain_name,
            sasl_token=self._token() if self.sasl_mechanism == "OAUTHBEARER" else None,
        )
        if not settings.addresses():
            raise ValueError(f"{bootstrap!r} names no HOST:PORT")
        return settings

    def _password(self) -> str | None:
        return plain_secret(self.password, self.password_file)

    def _token(self) -> Token | None:
        if self.oauth_token_file is not None:
            return token_of_file(self.oauth_token_file)
        url, client_id, secret = (
            self.oauth_token_url,
            self.oauth_client_id,
            self.oauth_client_secret,
        )
        if url is None or client_id is None or secret is None:
            return None
        return token_of_credentials(
            ClientCredentials(
                url=url,
                client_id=client_id,
                client_secret=secret.get_secret_value(),
                scope=self.oauth_scope,
            )
        )

    def _ssl_context(self) -> ssl.SSLContext:
        context = tls_context(
            self.ssl_cafile, self.ssl_certfile, self.ssl_keyfile, _plain(self.ssl_key_password)
        )
        context.check_hostname = self.ssl_check_hostname
        return context


class SchemaRegistryConnection(BaseModel):
    """Where a schema registry is, and how it lets us in. Files are PEM."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    url: str | None = None
    """The folder that holds ``schemas`` and ``subjects``; None: no registry."""
    username: str | None = None
    password: SecretStr | None = None
    password_file: SecretFile | None = None
    token: SecretStr | None = None
    """Bearer token."""
    token_file: SecretFile | None = None
    ssl_cafile: PemFile | None = None
    ssl_certfile: PemFile | None = None
    ssl_keyfile: PemFile | None = None
    timeout_ms: int = Field(default=5_000, ge=100, le=60_000)
    """Of one schema with all that it refers to."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it is not an address of the form http(s)://HOST:PORT/PATH")
        if parts.username is not None or parts.password is not None:
            raise ValueError("it holds a user; write schema_registry.username and password")
        return url

    def to_registry(self) -> RegistrySettings | None:
        """The registry as the decoders take it.

        Raises:
            ValueError: a file cannot be read.
        """
        if self.url is None:
            return None
        is_tls = self.url.startswith("https")
        files = (self.ssl_cafile, self.ssl_certfile, self.ssl_keyfile)
        return RegistrySettings(
            url=self.url,
            username=self.username,
            password=plain_secret(self.password, self.password_file),
            token=plain_secret(self.token, self.token_file),
            ssl_context=tls_context(*files, None) if is_tls else None,
            timeout_s=self.timeout_ms / 1000,
        )


def _plain(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def plain_secret(secret: SecretStr | None, file: Path | None) -> str | None:
    """The first line of the file, else the secret that was written."""
    return _plain(secret) if file is None else read_first_line(file)


def tls_context(
    cafile: Path | None, certfile: Path | None, keyfile: Path | None, password: str | None
) -> ssl.SSLContext:
    """Trust and client certificate of a connection.

    Raises:
        ValueError: a file cannot be read, or is not PEM.
    """
    if keyfile is not None and certfile is None:
        raise ValueError(f"ssl_keyfile {str(keyfile)!r} needs ssl_certfile, its certificate")
    if trusted := os.environ.get(_TRUSTED_BY_ALL):
        check_readable(trusted, _TRUSTED_BY_ALL)  # OpenSSL goes on without it
    context = ssl.create_default_context()
    if cafile is not None:
        with _used_as_pem(cafile):
            context.load_verify_locations(cafile=cafile)
    if certfile is not None:
        with _used_as_pem(certfile, keyfile):
            context.load_cert_chain(certfile, keyfile, password or _no_password)
    return context


@contextmanager
def _used_as_pem(*files: Path | None) -> Iterator[None]:
    try:
        yield
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(repr(str(file)) for file in files if file)
        raise ValueError(f"cannot use {named} as PEM: {error}. Export it as PEM") from error


def _no_password() -> str:
    """OpenSSL would ask for it at the terminal, and wait."""
    raise ValueError("the key of ssl_certfile has a password: set ssl_key_password")


def read_client_properties(path: Path) -> dict[str, Any]:
    """Settings of a client properties file; keys that only matter to Java are left out.

    Raises:
        ValueError: it cannot be read, or names a key store that only Java can open.
    """
    found: dict[str, Any] = {}
    properties = _properties(read_text(path, "config_file"))
    for store in _STORES:
        kind = properties.get(f"{store}.type", "JKS")
        if f"{store}.location" in properties and kind.upper() != "PEM":
            raise ValueError(
                f"{path}: {store}.location is a {kind} store, which only Java can open. Export "
                "it as PEM (`keytool -exportcert -rfc`, `openssl pkcs12`) and set "
                f"{store}.type=PEM"
            )
    for name, value in properties.items():
        if name in _FROM_PROPERTIES:
            found[_FROM_PROPERTIES[name]] = value
        elif name == "ssl.endpoint.identification.algorithm":
            found["ssl_check_hostname"] = bool(value)
        elif name == "sasl.jaas.config":
            found.update(_jaas_options(value))
    return found


def _jaas_options(value: str) -> dict[str, str]:
    options = {}
    for name, quoted, single, bare in _JAAS_OPTION.findall(value):
        if name in _FROM_JAAS:
            text = re.sub(r"\\(.)", r"\1", quoted) if quoted else single or bare
            options[_FROM_JAAS[name]] = text
    return options


def _properties(text: str) -> dict[str, str]:
    """Java's properties format, as far as client files use it."""
    joined = re.sub(r"\\\r?\n\s*", "", text)
    lines = (line.strip() for line in joined.splitlines())
    pairs = (
        re.split(r"\s*[=:]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!"
    )
    return {pair[0]: _unescape(pair[1]) if len(pair) == 2 else "" for pair in pairs}


def _unescape(value: str) -> str:
    """Java's escapes: ``\\u00e4`` and friends; before anything else a backslash just goes."""

    def plain(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", plain, value)
