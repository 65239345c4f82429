"""What the terminal says of one move: its last message whole, and what is left at its end."""

from dataclasses import replace
from typing import Final, cast

from control.move.events import MoveProgress, Outcome
from control.move.results import Fate
from control.move.state import OperationState, Phase
from planner.proposal import PartitionChange
from tests.support.picture import picture
from tests.support.settle import settle
from tui.app import PartiscopeApp
from tui.screens.reassignments.moves import MoveScreen
from tui.terminal_session import Services

RUNNING: Final = OperationState(
    operation_id="mv-3f9a21c4",
    phase=Phase.RUNNING,
    started_ms=1,
    waves_begun=1,
    throttle_bytes_per_s=1 << 20,
    throttle={},
    message="asked for 1.0 MiB/s on brokers 101, 102, 103, 104, 105 and 106",
    progress=MoveProgress(
        bytes_done=50 << 20,
        bytes_total=100 << 20,
        partitions_done=1,
        partitions_total=2,
        wave=1,
        waves=2,
        rate_bytes_per_s=3.0 * (1 << 20),
    ),
)


async def test_a_long_message_is_whole_and_at_the_end_no_rate_and_no_throttle_is_left(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="moves/mv-3f9a21c4")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: isinstance(app.screen, MoveScreen), "the move")
        screen = cast(MoveScreen, app.screen)
        screen.take(RUNNING)
        await settle(pilot, lambda: "105 and 106" in picture(app), "the message")
        assert "3.0 MiB/s" in picture(app)
        assert "throttle 1.0 MiB/s" in picture(app)
        assert "removed" not in picture(app)
        over = replace(RUNNING, phase=Phase.FINISHED, outcome=Outcome.CANCELLED, throttle=None)
        screen.take(over)
        await settle(pilot, lambda: "throttle 1.0 MiB/s, removed" in picture(app), "its end")
        assert "3.0 MiB/s" not in picture(app)


async def test_after_a_cancel_each_partition_says_what_became_of_it(services: Services) -> None:
    changes = tuple(
        PartitionChange(topic="t", partition=n, before=(1,), after=(2,), size_bytes=1)
        for n in range(3)
    )
    over = replace(
        RUNNING, phase=Phase.FINISHED, outcome=Outcome.CANCELLED, changes=changes,
        told_fates=(Fate.MOVED, Fate.WENT_BACK, Fate.NEVER_BEGAN),
    )  # fmt: skip
    app = PartiscopeApp(services, path="moves/mv-3f9a21c4")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, lambda: isinstance(app.screen, MoveScreen), "the move")
        cast(MoveScreen, app.screen).take(over)
        await settle(pilot, lambda: "1 went back, 1 never began" in picture(app), "the fates")
        lines = picture(app).splitlines()
        told = {word: line for line in lines for word in line.split() if word in ("t-0", "t-1")}
        assert told["t-0"].rstrip().endswith("moved")
        assert told["t-1"].rstrip().endswith("went back")
