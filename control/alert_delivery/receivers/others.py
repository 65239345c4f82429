"""Receivers that are no HTTP of ours: e-mail, a command of the operator, and Apprise."""

import json
import logging
import smtplib
import ssl
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from typing import Final

from control.alert_delivery.receivers.receiver import TIMEOUT_S, DeliveryError, shortened
from control.alerts.messages import FIRING, Message

SUBJECT_CHARACTERS_MAX: Final = 200
ID_HEADER: Final = "X-Partiscope-Message"

logging.getLogger("apprise").addHandler(logging.NullHandler())
logging.getLogger("apprise").propagate = False  # its lines may hold addresses with secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class Email:
    """Sends each message as a mail. A second copy has the same Message-ID, which mail programs
    show once."""

    host: str
    port: int
    sender: str
    to: Sequence[str]
    security: str = "starttls"
    """``starttls``, ``tls`` or ``none``."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ssl_context: ssl.SSLContext | None = None
    timeout_s: float = TIMEOUT_S
    kind: str = "email"
    refresh_ms: int | None = None

    @property
    def place(self) -> str:
        return f"{', '.join(self.to)} by {self.host}:{self.port}"

    def send(self, message: Message) -> None:
        """:raises DeliveryError: no recipient has taken it. One that is refused is told in the
        error of the next message, never by sending the others a second copy."""
        try:
            with self._connected() as server:
                if self.username is not None:
                    server.login(self.username, self.password or "")
                server.send_message(self._mail(message))
        except smtplib.SMTPResponseException as error:
            said = error.smtp_error
            words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
            raise self._error(f"answered {error.smtp_code}: {shortened(words)}") from error
        except smtplib.SMTPRecipientsRefused as error:
            raise self._error(f"takes no mail for {', '.join(error.recipients)}") from error
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise self._error(shortened(error) or type(error).__name__) from error

    def _error(self, why: str) -> DeliveryError:
        return DeliveryError(f"mail server {self.host}:{self.port}: {why}")

    def _connected(self) -> smtplib.SMTP:
        context = self.ssl_context or ssl.create_default_context()
        if self.security == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout_s, context=context)
        server = smtplib.SMTP(self.host, self.port, timeout=self.timeout_s)
        if self.security == "starttls":
            try:
                server.starttls(context=context)
            except BaseException:
                with suppress(OSError):
                    server.close()
                raise
        return server

    def _mail(self, message: Message) -> EmailMessage:
        mail = EmailMessage(policy=SMTP)
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.to)
        mail["Subject"] = _one_line(f"[Partiscope] {message.title}")
        mail["Date"] = formatdate(message.at_ms / 1000)
        mail["Message-ID"] = f"<{message.id}@partiscope>"
        mail[ID_HEADER] = message.id
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(message.text + "\n")
        return mail


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Runs a command of the operator with the JSON document on its standard input. Status 0 means
    that it has taken the message."""

    words: Sequence[str]
    timeout_s: float = TIMEOUT_S
    kind: str = "command"
    refresh_ms: int | None = None

    @property
    def place(self) -> str:
        return self.words[0]

    def send(self, message: Message) -> None:
        try:
            done = subprocess.run(
                list(self.words),
                input=json.dumps(message.document()).encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=self.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DeliveryError(
                f"{self.place} did not end within {self.timeout_s:g} s, and was killed"
            ) from error
        except OSError as error:
            raise DeliveryError(f"{self.place} cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            words = shortened(done.stderr[-2_000:].decode(errors="replace"))
            raise DeliveryError(f"{self.place} ended with {done.returncode}: {words or 'no words'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Apprise:
    """Sends each message through Apprise, by an address of one of its services."""

    url: str = field(repr=False)
    timeout_s: float = TIMEOUT_S
    kind: str = "apprise"
    refresh_ms: int | None = None

    @property
    def place(self) -> str:
        """The service alone: its address is a secret."""
        return self.url.partition(":")[0]

    def send(self, message: Message) -> None:
        import apprise  # it takes a while to load, and few need it

        service = apprise.Apprise()
        if not service.add(self.url):
            raise DeliveryError(f"Apprise knows no such address of {self.place}")
        kind = apprise.NotifyType.SUCCESS
        if message.status == FIRING:
            is_critical = message.severity == "critical"
            kind = apprise.NotifyType.FAILURE if is_critical else apprise.NotifyType.WARNING
        taken = service.notify(
            title=message.title, body=message.text, notify_type=kind, timeout=self.timeout_s
        )
        if not taken:
            raise DeliveryError(f"{self.place}: the service did not take it")


def _one_line(text: str) -> str:
    """Names of others must not add a header."""
    line = "".join(it if it.isprintable() else " " for it in text)
    return line[:SUBJECT_CHARACTERS_MAX]
