"""Who is asked before something is destroyed."""

import io
import sys

import pytest

from partiscope.cli.shared.confirm import require_typed
from partiscope.cli.shared.exits import CommandError, Exit


@pytest.mark.parametrize("stdin", [None, io.StringIO("orders\n")], ids=["closed", "a pipe"])
def test_where_nobody_can_be_asked_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(CommandError, match="add --yes") as raised:
        require_typed("orders", "all records go", is_confirmed=False)
    assert raised.value.status is Exit.REFUSED
    require_typed("orders", "all records go", is_confirmed=True)
