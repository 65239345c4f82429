"""Commands that we tell carry what makes them mean the same cluster."""

from collections.abc import Iterator

import pytest

from control.kafka.errors import NoBusError
from control.model import command_line
from control.model.command_line import CommandFlags, cluster_flag, command, typed, use_flags


@pytest.fixture(autouse=True)
def _flags() -> Iterator[None]:
    before = command_line._flags
    flags = CommandFlags(
        data="--data /srv/ps", cluster="--cluster prod", bus="--bus b:1", store="--store /s"
    )
    use_flags(lambda: flags)
    yield
    use_flags(before)


@pytest.mark.parametrize(
    ("told", "whole"),
    [
        ("moves watch mv-1", "moves watch mv-1 --data /srv/ps --cluster prod --bus b:1"),
        ("status", "status --data /srv/ps --cluster prod --store /s"),
        ("clusters", "clusters --data /srv/ps --store /s"),
        ("what-if --broker 3", "what-if --broker 3 --data /srv/ps --cluster prod --store /s"),
        ("journal", "journal --data /srv/ps --cluster prod --bus b:1"),
        ("segments orders 3", "segments orders 3 --data /srv/ps"),
        ("up --bootstrap k:1", "up --bootstrap k:1"),
        ("up --data /other", "up --data /other"),
        ("topics list --bootstrap k:1", "topics list --bootstrap k:1 --data /srv/ps --store /s"),
        ("broker --config f", "broker --config f"),
    ],
)
def test_a_command_gets_the_flags_that_it_takes_and_lacks(told: str, whole: str) -> None:
    assert command(told) == f"partiscope {whole}"
    assert typed(f"first `partiscope {told}`, then more") == (
        f"first `partiscope {whole}`, then more"
    )


def test_errors_tell_whole_commands() -> None:
    assert "`partiscope up --bootstrap k:1`" in NoBusError("k:1").next_step
    assert typed("no command `up` here") == "no command `up` here"


def test_without_flags_commands_stay_as_they_are() -> None:
    use_flags(CommandFlags)
    assert command("tui") == "partiscope tui"
    assert typed("`partiscope moves`") == "`partiscope moves`"
    assert [cluster_flag(name) for name in ("", "prod", "k:1,l:2")] == [
        "",
        "--cluster prod",
        "--bootstrap k:1,l:2",
    ]
