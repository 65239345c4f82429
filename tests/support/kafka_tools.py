"""Kafka's own command-line tools, all in one JVM that lives as long as the test run.

A tool's ``main`` is called with its arguments; what it printed and the status it left with come
back as if it had run as a process of its own, only without a JVM's start for every command.
"""

import atexit
import logging
import shutil
import subprocess
import threading
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from py4j import java_gateway, protocol
from py4j.java_gateway import (
    CallbackServerParameters,
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)
from py4j.protocol import Py4JJavaError

from tests.support.patience import patience_s

FLAGS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dfile.encoding=UTF-8",
)
STOP_TIMEOUT_S: Final = patience_s(10)


class ToolJvm:
    """One JVM with Kafka's jars; one tool runs at a time."""

    def __init__(self, libs: Path) -> None:
        port, self._process = launch_gateway(
            classpath=f"{libs}/*",
            javaopts=list(FLAGS),
            java_path=shutil.which("java"),
            die_on_exit=True,
            return_proc=True,
        )
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port),
            callback_server_parameters=CallbackServerParameters(
                port=0, daemonize=True, daemonize_connections=True
            ),
        )
        self._call_back_here()
        self._lock = threading.Lock()
        self.is_lost = False
        jvm = self._gateway.jvm
        # Set once and emptied before each run: Scala keeps the stream that it met first.
        self._out = jvm.java.io.ByteArrayOutputStream()
        self._err = jvm.java.io.ByteArrayOutputStream()
        jvm.System.setOut(jvm.java.io.PrintStream(self._out, True, "UTF-8"))
        jvm.System.setErr(jvm.java.io.PrintStream(self._err, True, "UTF-8"))
        is_moved = any(libs.glob("kafka-clients-4.[4-9]*.jar"))
        package = "org.apache.kafka.common.utils" + (".internals" if is_moved else "")
        self._exit = _Exit(self, package)
        # It reports what `_Exit` raises to unwind a tool as if it were a mishap.
        logging.getLogger("py4j.java_gateway").setLevel(logging.CRITICAL)
        exits = reduce(getattr, package.split("."), jvm).Exit
        exits.setExitProcedure(self._exit)
        exits.setHaltProcedure(self._exit)

    def run(
        self, main_class: str, args: Sequence[str], stdin: str | None
    ) -> subprocess.CompletedProcess[str]:
        """Call ``main``; what the tool printed until it left, and with which status."""
        with self._lock:
            self._forget_last_run()
            jvm = self._gateway.jvm
            jvm.System.setIn(jvm.java.io.ByteArrayInputStream((stdin or "").encode()))
            words = self._gateway.new_array(jvm.String, len(args))
            for index, word in enumerate(args):
                words[index] = word
            status = self._call(reduce(getattr, main_class.split("."), jvm).main, words)
            left = self._exit.left or (status, *self.printed())
            return subprocess.CompletedProcess((main_class, *args), *left)

    def _call(self, main: Any, words: Any) -> int:
        """The status of a ``main`` that returns or throws, rather than asking to exit."""
        try:
            # PySpark replaces this function for all of py4j and asks Spark's classes about errors.
            with patch.object(java_gateway, "get_return_value", protocol.get_return_value):
                main(words)
        except Py4JJavaError as error:
            if self._exit.left is None:
                error.java_exception.printStackTrace()
            return 1
        except BaseException:
            self.is_lost = True  # A test's time was up; the tool may still be at work.
            raise
        return 0

    def printed(self) -> tuple[str, str]:
        """What is on System.out and System.err by now."""
        return str(self._out.toString("UTF-8")), str(self._err.toString("UTF-8"))

    def close(self) -> None:
        """End the JVM."""
        self._gateway.shutdown_callback_server()
        self._gateway.close()
        self._process.kill()
        self._process.wait(STOP_TIMEOUT_S)
        self._process.stdin.close()

    def _call_back_here(self) -> None:
        server = self._gateway.java_gateway_server
        here = self._gateway.get_callback_server().get_listening_port()
        server.resetCallbackClient(server.getCallbackClient().getAddress(), here)

    def _forget_last_run(self) -> None:
        """The only state that the tools keep in statics: how many records a consumer showed."""
        self._out.reset()
        self._err.reset()
        self._exit.left = None
        consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        shown = self._gateway.jvm.Class.forName(consumer).getDeclaredField("messageCount")
        shown.setAccessible(True)
        shown.setInt(None, 0)


class _Exit:
    """What ``Exit.exit`` calls instead of ending the JVM; what comes after it does not count."""

    def __init__(self, jvm: ToolJvm, package: str) -> None:
        self._jvm = jvm
        self.Java = SimpleNamespace(implements=(f"{package}.Exit$Procedure",))
        """The Java interface that this implements; its package is another one since Kafka 4.4."""
        self.left: tuple[int, str, str] | None = None

    def execute(self, status: int, message: str | None) -> None:
        """Keep the status and the words so far, then unwind the tool."""
        if self.left is None:
            self.left = (status, *self._jvm.printed())
        raise SystemError(f"the tool leaves with {status}: {message}")


_running: dict[Path, ToolJvm] = {}


def tool_jvm(libs: Path) -> ToolJvm:
    """The JVM of this test run; a new one after a tool that never came back."""
    if libs in _running and _running[libs].is_lost:
        _running.pop(libs).close()
    if libs not in _running:
        _running[libs] = ToolJvm(libs)
    return _running[libs]


@atexit.register
def _close_all() -> None:
    for jvm in _running.values():
        jvm.close()
