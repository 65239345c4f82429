"""One node as a process: `python -m broker.server.main --config FILE`.

Prints `ready HOST:PORT` on stdout when clients can produce. Exit status: 0 after SIGTERM or
SIGINT · 1 when it cannot start or must stop, 2 when its configuration cannot be used, with one
line on stderr that says what, why and what to do next.
"""

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING

from broker.config.broker_config import BrokerConfig
from broker.config.errors import ConfigError

if TYPE_CHECKING:
    from broker.server.node import Node

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_WRONG_USE = 2
OTHERS = 0o077
"""Rights of other users of the machine: what a node writes is for its own user alone."""
COLLECTOR_THRESHOLDS = (20_000, 20, 50)
"""Python's cycle collector, run less often than its defaults: the data path makes no cycles."""
SWITCH_S = 0.001
"""How long a thread that computes may keep Python's lock from the event loop: a fifth of the
default, since what waits for the loop are clients."""

log = logging.getLogger("broker")


def run(config_path: str) -> int:
    """Run one node until it is told to stop; the exit status."""
    configure_logging()
    os.umask(OTHERS)
    # kio imports Hypothesis where that is installed, which doubles the time to start.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    from broker.server.node import OPERATOR_ERRORS, Node

    try:
        config = BrokerConfig.from_file(config_path)
        sys.setswitchinterval(SWITCH_S)
        return asyncio.run(_serve(Node(config)))
    except (ConfigError, *OPERATOR_ERRORS) as error:
        log.error("%s", error)
        return EXIT_WRONG_USE if isinstance(error, ConfigError) else EXIT_FAILED


async def _serve(node: "Node") -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    try:
        await node.start(stopping)
        gc.freeze()
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        if not stopping.is_set():
            sys.stdout.write(f"ready {node.address}\n")
            sys.stdout.flush()
        await stopping.wait()
    finally:
        await node.stop()
    if node.fault is not None:
        log.error("stopped by a fault: %s", node.fault)
        return EXIT_FAILED
    return EXIT_DONE


def configure_logging() -> None:
    """One line per message on stderr."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def main() -> int:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m broker.server.main", description=__doc__)
    parser.add_argument("--config", required=True, help="a Kafka-style properties file")
    return run(parser.parse_args().config)


if __name__ == "__main__":
    sys.exit(main())
