"""Writes to a topic at a steady rate in a process of its own: ``SteadyLoad`` beside nobody's loop.

python -m tests.support.load_process BOOTSTRAP TOPIC PER_S PARTITIONS COUNT
"""

import asyncio
import sys

from tests.support.steady_load import SteadyLoad


async def send(bootstrap: str, topic: str, *, per_s: int, partitions: int, count: int) -> float:
    """So many records from another process; the records a second that were acknowledged."""
    words = (bootstrap, topic, str(per_s), str(partitions), str(count))
    command = (sys.executable, "-m", "tests.support.load_process", *words)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    assert process.returncode == 0, command
    return float(told)


def main(bootstrap: str, topic: str, per_s: str, partitions: str, count: str) -> None:
    """Send, and tell the rate that was reached."""
    load = SteadyLoad(bootstrap, topic, per_s=int(per_s), partitions=int(partitions))
    print(load.send(int(count)))


if __name__ == "__main__":
    main(*sys.argv[1:])
