"""Other users of the machine at the ports of the job's Spark."""

import os
import socket
import time
from contextlib import suppress
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.listening import (
    LOOPBACK,
    STRANGERS_CLASS,
    answer,
    listening_ports,
    spark_call,
)
from tests.support.metrics_job import processes_below
from tests.support.patience import WAIT_S, patience_s

pytestmark = [pytest.mark.spark, pytest.mark.timeout(patience_s(120))]

CALLBACK: Final = b"c\np0\ncall\ni0\ne\n"
"""As the JVM calls the function of a batch: py4j's first object."""
SAYS_WHAT_RUNS: Final = b"c\nz:java.lang.System\ngetProperties\ne\n"
MIB: Final = 1 << 20
ENDLESS_BYTES: Final = 128 * MIB
IS_SERVED: Final = b"!y"
"""How py4j begins the answer to a call that it has carried out."""


def test_strangers_are_refused_at_every_port_while_batches_go_on(spark: SparkSession) -> None:
    counts: list[int] = []

    def count(batch: DataFrame, _: int) -> None:
        counts.append(batch.count())

    query = spark.readStream.format("rate").load().writeStream.foreachBatch(count).start()
    try:
        _wait_for_rows(counts)
        me = os.getpid()
        ports = listening_ports([me, *processes_below(me)])
        gateway: Any = spark.sparkContext._gateway
        calls_back = gateway._callback_server.port
        assert calls_back in ports
        assert answer(calls_back, CALLBACK) == b"", "neither a result nor an error of the call"
        assert int(spark.sparkContext.getConf().get("spark.driver.port") or 0) in ports
        said = {port: answer(port, spark_call()) for port in ports}
        assert not {port: it for port, it in said.items() if STRANGERS_CLASS in it}
        authenticated = [port for port, it in said.items() if b"SaslMessage" in it]
        assert len(authenticated) == 2, "the driver and its block manager"
        for port, address in ports.items():
            assert address in LOOPBACK, port
            assert not answer(port, SAYS_WHAT_RUNS).startswith(IS_SERVED), port
        _wait_for_rows(counts)
    finally:
        query.stop()


def test_a_stranger_cannot_fill_memory_by_a_line_without_end(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    sent = 0
    with socket.create_connection(("127.0.0.1", gateway._callback_server.port), WAIT_S) as stranger:
        stranger.settimeout(WAIT_S)
        with suppress(ConnectionError):
            while sent < ENDLESS_BYTES:
                sent += stranger.send(b"x" * MIB)
    assert sent < ENDLESS_BYTES, "the line was read and read"


def _wait_for_rows(counts: list[int]) -> None:
    """Until a batch that begins from now on has had rows."""
    counts.clear()
    deadline_s = time.monotonic() + WAIT_S
    while not any(counts[1:]):
        assert time.monotonic() < deadline_s, "no batch had rows"
        time.sleep(0.1)
