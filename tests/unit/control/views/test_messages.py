"""Messages as rows: text where it is text, bytes where it is not, null apart from empty."""

import pytest

from control.views.messages import moment_text
from control.views.printable import readable


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"plain", "plain"),
        ("Grüße".encode(), "Grüße"),
        (b"", ""),
        (None, "null"),
        (b"\x00\x01", "\\x00\\x01"),
        (b"\xff\xfe", "0xfffe"),
        (b"0xfffe", '"0xfffe"'),
        (b"null", '"null"'),
        (b'{"path": "C:\\temp"}', '{"path": "C:\\temp"}'),
        (b'{\n\t"a": 1\n}', '{\\n\\t"a": 1\\n}'),
    ],
)
def test_keys_and_values_are_shown_as_what_they_are(value: bytes | None, shown: str) -> None:
    assert readable(value) == shown


def test_a_record_without_a_time_has_none() -> None:
    assert moment_text(-1) == "–"
    in_nanoseconds = 1_700_000_000_123_456_789
    assert moment_text(in_nanoseconds) == f"{in_nanoseconds} ms"
    assert moment_text(1_700_000_000_123).endswith(".123")
