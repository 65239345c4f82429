"""Receivers over real sockets and processes: what they get, and what is said where they do not."""

import json
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from control.alert_delivery.receivers.http import Alertmanager, HttpPlace, Webhook
from control.alert_delivery.receivers.others import Apprise, Command, Email
from control.alert_delivery.receivers.receiver import DeliveryError, Receiver
from control.alerts.alert import Alert, AlertStatus
from control.alerts.machine import Tell, Telling
from control.alerts.messages import Message, messages_of
from control.alerts.readings import Match
from tests.support.alert_receivers import MailServer, WebhookServer
from tests.support.patience import patience_s

AT_MS = 1_790_000_000_000


def _message(subject: str = "billing", *, ends: bool = False) -> Message:
    alert = Alert(
        rule="lag",
        cluster="prod",
        match=Match(subject=subject, words="lag 5", path="groups/billing"),
        severity="critical",
        status=AlertStatus.RESOLVED if ends else AlertStatus.FIRING,
        since_ms=AT_MS - 9_000,
        fired_ms=AT_MS - 8_000,
        resolved_ms=AT_MS - 1_000 if ends else None,
    )
    telling = Telling(receiver="r", kind=Tell.RESOLVES if ends else Tell.FIRES, alert=alert)
    return next(messages_of([telling], at_ms=AT_MS))


def test_a_webhook_gets_the_document_with_its_token() -> None:
    with WebhookServer() as server:
        Webhook(to=HttpPlace(url=server.url, token="t0ken")).send(_message())
        assert server.taken == [_message().document()]
        assert server.headers[0]["authorization"] == "Bearer t0ken"


def test_an_alertmanager_gets_alerts_of_its_api() -> None:
    with WebhookServer() as server:
        receiver = Alertmanager(to=HttpPlace(url=server.url))
        receiver.send(_message())
        receiver.send(_message(ends=True))
    ((fires,), (ends,)) = server.taken
    assert fires["labels"]["alertname"] == "lag"
    assert fires["labels"]["subject"] == "billing"
    assert fires["labels"] == ends["labels"]
    assert fires["startsAt"] == ends["startsAt"] < ends["endsAt"] < fires["endsAt"]


def test_a_refusal_is_told_without_the_secret_of_the_address() -> None:
    with WebhookServer() as server:
        server.refuses_with = 403
        receiver = Webhook(to=HttpPlace(url=server.url))
        with pytest.raises(DeliveryError, match="403") as told:
            receiver.send(_message())
        for words in (str(told.value), repr(receiver), receiver.place):
            assert "s3cret" not in words


def test_a_server_that_drips_its_answer_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_drip, args=(server,), daemon=True)
        thread.start()
        place = HttpPlace(url=f"http://127.0.0.1:{server.getsockname()[1]}/", timeout_s=0.5)
        began_s = time.monotonic()
        with pytest.raises(DeliveryError):
            Webhook(to=place).send(_message())
        assert time.monotonic() - began_s < patience_s(5)
    thread.join()


def _drip(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        for letter in b"HTTP/1.1 200 OK\r\n" + b"x-slow: 1\r\n" * 50:
            try:
                connection.sendall(bytes([letter]))
            except OSError:
                return
            time.sleep(0.05)


def test_a_mail_has_the_same_message_id_twice_and_no_header_of_a_foreign_name() -> None:
    with MailServer() as server:
        receiver = _mail(server.port)
        for _ in range(2):
            receiver.send(_message("billing\r\nBcc: thief@example.org"))
        first, second = server.taken
    assert first["Message-ID"] == second["Message-ID"]
    assert first["Bcc"] is None
    assert "lag 5" in str(first.get_payload())


def test_a_mail_server_that_refuses_is_named_with_its_answer() -> None:
    with MailServer() as server:
        server.refuses_with = "451 greylisted"
        with pytest.raises(DeliveryError, match=r"451.*greylisted"):
            _mail(server.port).send(_message())


def _mail(port: int) -> Email:
    return Email(
        host="127.0.0.1", port=port, sender="a@example.org", to=["b@example.org"], security="none"
    )


def test_a_command_gets_the_document_on_its_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "got.json"
    Command(words=["tee", str(file)]).send(_message())
    assert json.loads(file.read_text()) == _message().document()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import sys; sys.exit('no route')", "no route"),
        ("import time; time.sleep(60)", "killed"),
    ],
)
def test_a_command_that_fails_or_hangs_has_not_taken_it(script: str, why: str) -> None:
    with pytest.raises(DeliveryError, match=why):
        Command(words=[sys.executable, "-c", script], timeout_s=1).send(_message())


def test_apprise_reaches_a_service_by_its_address() -> None:
    with WebhookServer() as server:
        address = server.url.replace("http://", "json://")
        Apprise(url=address).send(_message())
        assert server.taken[0]["title"] == _message().title
        server.refuses_with = 500
        with pytest.raises(DeliveryError) as told:
            Apprise(url=address).send(_message())
        assert "s3cret" not in str(told.value)


@pytest.mark.parametrize(
    "receiver",
    [
        Webhook(to=HttpPlace(url="http://127.0.0.1:1/")),
        Email(host="127.0.0.1", port=1, sender="a@b", to=["c@d"]),
        Command(words=["/nowhere/notify"]),
        Apprise(url="nosuchservice://x"),
    ],
)
def test_each_fault_is_a_delivery_error(receiver: Receiver) -> None:
    with pytest.raises(DeliveryError):
        receiver.send(_message())
