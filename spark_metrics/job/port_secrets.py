"""Secrets for the ports of Spark's driver: without one, whoever reaches a port is served.

Driver, block manager, executors: ``spark.authenticate``, see Spark's page "Security". Spark itself
draws a secret for each application on one machine, on YARN and on Kubernetes. A standalone cluster
has one secret for all, which master and workers must hold, too: its owner sets it.

Callbacks from the JVM, such as ``foreachBatch``: py4j 0.10.9.9 knows a token for them
(``CallbackClient.authToken``, ``PythonParameters.auth_token``). PySpark gives it none, and
``GatewayServer.resetCallbackClient``, by which the JVM hears of the port, would drop it
(``PythonClient.copyWith``). So it is put into the client that is there afterwards.

py4j reads whole lines before it looks at the token: here they are bounded until then. The JVM's own
side of py4j does the same, and knows no bound: see docs/operate/security.md.
"""

from collections.abc import Mapping
from secrets import token_hex
from typing import Any, BinaryIO, Final

from py4j.clientserver import PythonServer
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JAuthenticationError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from spark_metrics.window.errors import SparkStartError

AUTHENTICATE: Final = "spark.authenticate"
SECRET: Final = "spark.authenticate.secret"  # noqa: S105 (the setting's name)
TOKEN_BYTES: Final = 32
_GREETING_LINES: Final = 3
"""The command, the token, the end."""
_GREETING_BYTES_MAX: Final = 4096
"""Bytes of one of these lines."""
_HAS_OWN_SECRET: Final = ("spark://", "local-cluster")
"""Masters of a standalone cluster, for which Spark draws no secret."""


def authentication(master: str) -> Mapping[str, str]:
    """Spark's settings by which ports of driver and executors take nothing from strangers. Pure."""
    return {} if master.startswith(_HAS_OWN_SECRET) else {AUTHENTICATE: "true"}


def require_authentication(session: SparkSession, master: str) -> None:
    """Go on only where Spark's ports are authenticated, or its owner has said that they are not.

    Raises:
        SparkStartError: a standalone cluster for which nobody has decided.
    """
    if session.sparkContext.getConf().get(AUTHENTICATE) is None:
        raise SparkStartError(
            f"Spark at {master} has no secret",
            why="everybody who reaches the ports of the job or of its executors could run code "
            "there",
            what_next=f"Write `{AUTHENTICATE} true` and `{SECRET} SECRET` into the "
            "spark-defaults.conf (mode 0600) of master, workers and job, and start them again; or "
            f"`{AUTHENTICATE} false` into the job's, where nobody else reaches those ports",
        )


def guard_callbacks(session: SparkSession) -> None:
    """Let only the session's own JVM call back: start the server of callbacks with a token."""
    gateway: Any = session.sparkContext._gateway
    token = token_hex(TOKEN_BYTES)
    gateway.callback_server_parameters.auth_token = token
    PythonServer._create_connection = _create_bounded
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # pyspark's own
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    field = client.getClass().getSuperclass().getDeclaredField("authToken")
    field.setAccessible(True)
    field.set(client, token)


class _BoundedGreeting:
    """Lines of a connection; a stranger cannot fill memory by one that does not end."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._bounded_left = _GREETING_LINES

    def readline(self) -> bytes:
        """The next line.

        Raises:
            Py4JAuthenticationError: it is too long for somebody who has shown no token yet.
        """
        if not self._bounded_left:
            return self._stream.readline()
        self._bounded_left -= 1
        line = self._stream.readline(_GREETING_BYTES_MAX)
        if len(line) == _GREETING_BYTES_MAX:
            raise Py4JAuthenticationError("a line without end in the place of a token")
        return line

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


_create: Final[Any] = PythonServer._create_connection


def _create_bounded(server: PythonServer, connection: Any, stream: BinaryIO) -> Any:
    return _create(server, connection, _BoundedGreeting(stream))
