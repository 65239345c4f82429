"""TLS contexts of listeners and of connections to other nodes, made anew when their files change.

A context is made when it is first asked for and whenever a file is another one than before, so a
certificate is renewed without a restart. Files that cannot be read then leave the former context
in use, and say so.
"""

import logging
import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import Any, Final

from broker.config.errors import ConfigError
from broker.config.tls import ClientAuth, PemStore, TlsConfig
from broker.named_file import NamedFileError, read_text

HANDSHAKE_TIMEOUT_S: Final = 10.0
HANDSHAKES_MAX: Final = 128
"""At once, on all listeners of a kind: each holds 300 to 500 KB of the event loop's buffers."""
LOOK_MS: Final = 1_000
"""Files are looked at so often at most."""
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_SHORT_NAMES: Final[Mapping[str, str]] = {
    "commonName": "CN", "countryName": "C", "localityName": "L", "stateOrProvinceName": "ST",
    "organizationName": "O", "organizationalUnitName": "OU", "streetAddress": "STREET",
    "domainComponent": "DC", "userId": "UID",
}  # fmt: skip
"""Attributes that RFC 2253 names; others keep their own name."""
_ESCAPED: Final = str.maketrans({char: f"\\{char}" for char in ',+"\\<>;'})

log = logging.getLogger(__name__)


class TlsContext:
    """The context of one side of a listener."""

    def __init__(
        self,
        config: TlsConfig,
        build: Callable[[TlsConfig], ssl.SSLContext],
        now_ms: Callable[[], int],
    ) -> None:
        """Raises ConfigError where the files cannot be used."""
        self.config = config
        self._build = build
        self._now_ms = now_ms
        self._looked_ms = now_ms()
        self._seen = self._files()
        self._context = build(config)

    def current(self) -> ssl.SSLContext:
        """For the next connection."""
        now_ms = self._now_ms()
        if now_ms - self._looked_ms >= LOOK_MS:
            self._looked_ms = now_ms
            self._look()
        return self._context

    def _look(self) -> None:
        found = self._files()
        if found == self._seen:
            return
        self._seen = found
        try:
            self._context = self._build(self.config)
        except ConfigError as error:
            log.error("certificates stay those of before: %s", error)
        else:
            log.info("certificates were read anew: %s", ", ".join(path for path, *_ in found))

    def _files(self) -> list[tuple[Any, ...]]:
        stores = (self.config.keys, self.config.trusted)
        paths = [store.path for store in stores if store is not None and store.path]
        return [(path, *_mark(path)) for path in paths]


def _mark(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ino, found.st_size


def server_context(config: TlsConfig) -> ssl.SSLContext:
    """For what accepts connections. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _limit(context, config)
    _load_keys(context, config)
    if config.trusted is not None:
        _load_trusted(context, config.trusted)
    context.verify_mode = _VERIFY[config.client_auth]
    return context


def client_context(config: TlsConfig) -> ssl.SSLContext:
    """For what connects to another node. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = config.checks_host
    _limit(context, config)
    _load_keys(context, config)
    if config.trusted is None:
        context.load_default_certs()
    else:
        _load_trusted(context, config.trusted)
    return context


def _limit(context: ssl.SSLContext, config: TlsConfig) -> None:
    versions = sorted(_VERSIONS[each] for each in config.versions)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _load_keys(context: ssl.SSLContext, config: TlsConfig) -> None:
    password = config.key_password or ""
    with _as_file(config.keys, "a private key and its chain, and ssl.key.password") as path:
        # Without a callback OpenSSL would ask on the terminal.
        context.load_cert_chain(path, password=lambda: password)


def _load_trusted(context: ssl.SSLContext, store: PemStore) -> None:
    with _as_file(store, "certificates") as path:
        context.load_verify_locations(path)


@contextmanager
def _as_file(store: PemStore, wanted: str) -> Iterator[str]:
    """A path for OpenSSL, which takes PEM from files alone; only we can read the file."""
    try:
        text = store.text if store.path is None else read_text(store.path, store.named)
        with NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(text or "")
            file.flush()
            yield file.name
    except NamedFileError as error:
        raise ConfigError(str(error)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        where = store.named if store.path is None else f"{store.named}={store.path}"
        raise ConfigError(f"{where}: {reason}; it must hold {wanted} in PEM") from error


def distinguished_name(certificate: Mapping[str, Any]) -> str:
    """The subject of ``SSLSocket.getpeercert()``, as RFC 2253 writes it: the last part first."""
    return ",".join(
        "+".join(f"{_SHORT_NAMES.get(name, name)}={_escaped(value)}" for name, value in part)
        for part in reversed(certificate.get("subject", ()))
    )


def _escaped(value: str) -> str:
    text = value.translate(_ESCAPED)
    if text.startswith((" ", "#")):
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if text.endswith(" ") and len(text) > 1 else text
