"""``partiscope demo``: a load that gives the screens something to show."""

import asyncio
import signal
from typing import Annotated

import typer

from partiscope.cli.shared.confirm import require_change
from partiscope.cli.shared.options import Bootstrap, known_bootstrap, settings_with
from partiscope.running import say

Times = Annotated[int, typer.Option(min=1, max=100, help="Multiple of the usual load.")]


def demo(bootstrap: Bootstrap = None, times: Times = 1) -> None:
    """Create a few topics and run producers and groups: one keeps up, one lags, one is stuck."""
    from control.messages.demo import create_topics, demo_settings, run

    require_change(bootstrap)
    address = known_bootstrap(settings_with(bootstrap=bootstrap))

    async def serve() -> None:
        stop = asyncio.Event()
        for signum in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(signum, stop.set)
        await create_topics(demo_settings(address))
        say("ready demo load")
        await run(address, stop, times=times)

    asyncio.run(serve())
