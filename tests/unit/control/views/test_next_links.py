"""Commands in a text as links of the page."""

import pytest

from control.views.next_links import Part, linked


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("see `partiscope topics list --bus b:1` now",
         [Part("see "), Part("Topics", "topics"), Part(" now")]),
        ("`partiscope moves watch mv-1 --bus b:1` shows it",
         [Part("mv-1", "moves/mv-1"), Part(" shows it")]),
        ("`partiscope brokers drain 103`", [Part("drain 103", "brokers/103")]),
        ("`partiscope status`", [Part("Overview", "overview")]),
        ("`partiscope topics create NAME` makes one",
         [Part("Topics", "topics"), Part(" makes one")]),
        ("run `partiscope doctor`", [Part("run `partiscope doctor`")]),
        ("", []),
    ],
)  # fmt: skip
def test_a_command_with_a_view_is_a_link(text: str, parts: list[Part]) -> None:
    assert list(linked(text)) == parts
