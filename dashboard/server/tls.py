"""TLS of the page by certificate files. Whoever renews them (certbot, cert-manager) replaces the
files; the next connection gets the new certificate, and connections that stand keep theirs."""

import logging
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOOK_S: Final = 1.0
"""How often the files are looked at, at most: at a handshake."""
_log: Final = logging.getLogger(__name__)
_Marks = tuple[tuple[int, int, int], ...]


class CertificateError(Exception):
    """Files that hold no certificate with its key; the text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """PEM files: the chain, the page's own certificate first, and its key."""

    certificate: Path
    key: Path

    def load(self) -> ssl.SSLContext:
        """A context of what they hold now.

        :raises CertificateError: they hold no pair.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self.certificate, self.key, password=self._refuse_password)
        except OSError as error:
            raise CertificateError(self._why(error)) from error
        return context

    def marks(self) -> _Marks:
        """Others once a file is replaced or written.

        :raises CertificateError: a file is not there.
        """
        try:
            found = [path.stat() for path in (self.certificate, self.key)]
        except OSError as error:
            raise CertificateError(self._why(error)) from error
        return tuple((it.st_ino, it.st_size, it.st_mtime_ns) for it in found)

    def _refuse_password(self) -> str:
        raise CertificateError(
            f"key {self.key} is encrypted, and nobody is there to type its password. Name a file "
            f"with the key in plain PEM, mode 0600: `openssl pkey -in {self.key} -out NEW`"
        )

    def _why(self, error: OSError) -> str:
        if isinstance(error, ssl.SSLError):
            is_of_another = error.reason == "KEY_VALUES_MISMATCH"
            why = "the key is of another certificate" if is_of_another else "they are no PEM pair"
        else:
            why = (error.strerror or str(error)).lower()
        pair = f"certificate {self.certificate} and key {self.key}"
        return f"{pair} cannot be used: {why}. Name both by dashboard.certificate and dashboard.key"


class RenewedContext:
    """The context of the page, whose certificate follows its files."""

    def __init__(self, files: CertificateFiles) -> None:
        """:raises CertificateError: there is no certificate to begin with."""
        self._files = files
        self._told = ""
        self._current = self.context = files.load()
        self._marks: _Marks | None = None
        self._looked_s = 0.0
        self.context.sni_callback = self._handle_hello

    def _handle_hello(self, connection: ssl.SSLObject, _name: str | None, _: object) -> None:
        """Gives a handshake the newest certificate. Files that are half replaced change nothing."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self._maybe_renew()
        connection.context = self._current

    def _maybe_renew(self) -> None:
        try:
            marks = self._files.marks()
            if marks == self._marks:
                return
            self._current, self._marks, self._told = self._files.load(), marks, ""
        except CertificateError as error:
            if (told := str(error)) != self._told:
                self._told = told
                _log.warning("%s; the certificate before stays in use", told)
