"""A message is filled into the produce form only where the form would send the same bytes."""

from dataclasses import replace
from typing import Any

import pytest

from control.operations.catalogue.topics.produce import PRODUCE, produce_job
from control.views.messages.details import resend_path
from tests.unit.dashboard.pages.test_browse import record


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"value": b" v\n\n"},
        {"key": b" k "},
        {"value": "سلام\u200cمن \u2764\ufe0f".encode()},
        {"headers": ()},
        {"headers": (("a", b"1"), ("b", b"x=y"), ("a", b" 2"))},
        {"value": None},
    ],
)
def test_what_is_filled_in_is_sent_as_it_was(changed: dict[str, Any]) -> None:
    message = replace(record(7, b"v"), **changed)
    path, why = resend_path(message)
    assert path is not None, why
    job = produce_job(PRODUCE.parse({"topic": "orders", **path.query}))
    sent = (job.keys or "").encode(), None if job.value is None else job.value.encode()
    assert sent == (message.key, message.value)
    assert job.headers == message.headers


@pytest.mark.parametrize(
    "changed",
    [
        {"value": b"\xff"},
        {"key": b"\xff"},
        {"value": b"a\r\nb"},
        {"value": b"a\0b"},
        {"key": b"a\nb"},
        {"value": b"{uuid}"},
        {"key": b"seq"},
        {"value": b""},
        {"headers": (("a", None),)},
        {"headers": (("a", b"1, b=2"),)},
        {"headers": (("a", b"1 "),)},
        {"headers": (("a", b"\xff"),)},
        {"headers": (("", b"1"),)},
    ],
)
def test_what_a_form_would_change_is_refused(changed: dict[str, Any]) -> None:
    path, why = resend_path(replace(record(7, b"v"), **changed))
    assert path is None
    assert why
