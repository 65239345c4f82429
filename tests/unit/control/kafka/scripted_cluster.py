"""A cluster on loopback that answers by script: real frames over real sockets, in a thread.

A test says what a broker answers to an API: fields of the response, bytes of its own choice, a
silence, a closed connection. Metadata and FindCoordinator have answers without being told.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from broker.protocol import codec
from control.kafka.connection.settings import KafkaSettings
from tests.support.patience import WAIT_S

API_VERSIONS: Final = 18
METADATA: Final = 3
FIND_COORDINATOR: Final = 10
CLUSTER_ID: Final = "scripted"
SERVED: Final[Mapping[int, tuple[int, int]]] = dict.fromkeys(range(93), (0, 30))
"""Every API, in every version that a client may know."""


@dataclass(frozen=True, slots=True)
class Frame:
    """These bytes are the answer, whatever they are; the size before them counts."""

    data: bytes


class Silence:
    """No answer comes."""


class Closed:
    """The connection ends instead of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, as a broker read it."""

    broker: int
    api: int
    version: int
    correlation_id: int
    message: Any

    def encoded(self, **fields: Any) -> bytes:
        """The response with these fields, in a frame."""
        response = codec.build_response(self.api, self.version, **fields)
        return codec.encode_response(self.api, self.version, self.correlation_id, response)


Reply = Mapping[str, Any] | Frame | type[Silence] | type[Closed]
Script = Callable[[Asked], Reply]
Partitions = Mapping[int, tuple[int, ...]]
"""Replicas of each partition; the first one leads. None of them: it has no leader."""


def in_turn(*replies: Reply) -> Script:
    """A script: one reply after the other, the last one for ever."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@dataclass
class ScriptedCluster:
    """Brokers with these ids; a context manager."""

    ids: tuple[int, ...] = (1,)
    topics: dict[str, Partitions] = field(default_factory=dict)
    served: dict[int, tuple[int, int]] = field(default_factory=lambda: dict(SERVED))
    controller: int = -1
    coordinators: dict[str, int] = field(default_factory=dict)
    """By group; the first broker coordinates the others."""
    scripts: dict[int, Script] = field(default_factory=dict)
    """By API key: in place of the usual answer."""
    asked: list[Asked] = field(default_factory=list)
    connections: Counter[int] = field(default_factory=Counter)
    ports: dict[int, int] = field(default_factory=dict)
    faults: list[Exception] = field(default_factory=list)
    """Of the script itself: they end the test."""
    shown: set[int] | None = None
    """Brokers that metadata lists; None: all of them."""
    hosts: dict[int, str] = field(default_factory=dict)
    """Hosts that metadata tells in place of this machine."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._writers: dict[asyncio.StreamWriter, int] = {}
        self._servers: dict[int, asyncio.Server] = {}
        self._has_ended = False
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        for broker in self.ids:
            self._call(self._start(broker))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self.faults:
            raise self.faults[0]

    @property
    def bootstrap(self) -> str:
        """Addresses of all of them."""
        return ",".join(self.address(broker) for broker in self.ids)

    def address(self, broker: int) -> str:
        """``host:port`` of one."""
        return f"127.0.0.1:{self.ports[broker]}"

    def settings(self, **more: Any) -> KafkaSettings:
        """Quick ones: nobody waits for what fails."""
        quick = {"attempts_max": 3, "backoff_ms": 1, "backoff_ms_max": 1}
        return KafkaSettings(**{"bootstrap": self.bootstrap, **quick, **more})

    def on(self, api: Any, reply: Script | Reply) -> None:
        """From now on this is the answer to an API (``apis.METADATA``, or its key)."""
        key = api if isinstance(api, int) else api.key
        is_script = callable(reply) and reply not in (Silence, Closed)
        self.scripts[key] = reply if is_script else lambda _: reply  # type: ignore[assignment, return-value]

    def requests(self, api: Any) -> list[Asked]:
        """Those of an API that came, in order."""
        key = api if isinstance(api, int) else api.key
        return [each for each in self.asked if each.api == key]

    def stop(self, broker: int) -> None:
        """It listens no longer, and its connections end."""
        self._call(self._stop(broker))

    def metadata(self, asked: Asked) -> dict[str, Any]:
        """The usual answer to Metadata, to be changed by a script."""
        wanted = asked.message.topics
        named = self.topics if wanted is None else [topic.name for topic in wanted]
        live = [it for it in self.ids if self.shown is None or it in self.shown]
        return {
            "brokers": tuple(
                {
                    "node_id": it,
                    "host": self.hosts.get(it, "127.0.0.1"),
                    "port": self.ports[it],
                }
                for it in live
            ),
            "cluster_id": CLUSTER_ID,
            "controller_id": self.controller,
            "topics": tuple(self._topic(name) for name in named),
        }

    def _topic(self, name: str) -> dict[str, Any]:
        if name not in self.topics:
            return {"name": name, "error_code": 3, "is_internal": False, "partitions": ()}
        partitions = tuple(
            {
                "error_code": 0 if replicas else 5,
                "partition_index": index,
                "leader_id": replicas[0] if replicas else -1,
                "leader_epoch": 1,
                "replica_nodes": replicas,
                "isr_nodes": replicas,
                "offline_replicas": (),
            }
            for index, replicas in self.topics[name].items()
        )
        return {"name": name, "error_code": 0, "is_internal": False, "partitions": partitions}

    def _coordinator(self, asked: Asked) -> dict[str, Any]:
        keys = getattr(asked.message, "coordinator_keys", None) or (asked.message.key,)
        found = [self.coordinators.get(key, self.ids[0]) for key in keys]
        told = [
            {"key": key, "node_id": it, "host": "127.0.0.1", "port": self.ports[it],
             "error_code": 0, "error_message": None}
            for key, it in zip(keys, found, strict=True)
        ]  # fmt: skip
        one = {name: told[0][name] for name in ("node_id", "host", "port")}
        return {"coordinators": tuple(told), **one, "error_code": 0, "error_message": None}

    def _call(self, work: Any) -> Any:
        done: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(WAIT_S)

    async def _start(self, broker: int) -> None:
        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Any:
            return self._serve(broker, reader, writer)

        self._servers[broker] = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.ports[broker] = self._servers[broker].sockets[0].getsockname()[1]

    async def _stop(self, broker: int) -> None:
        self._servers[broker].close()
        for writer, owner in self._writers.items():
            if owner == broker:
                writer.close()

    async def _end(self) -> None:
        for broker in self.ids:
            await self._stop(broker)
        self._has_ended = True
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        closed = (writer.wait_closed() for writer in self._writers)
        await asyncio.gather(*closed, return_exceptions=True)

    async def _serve(
        self, broker: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections[broker] += 1
        self._writers[writer] = broker
        try:
            while not self._has_ended:
                answer = self._answer(broker, await _frame_of(reader))
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (OSError, EOFError):
            pass  # the client has gone
        except Exception as error:  # noqa: BLE001 (whatever it is, the script is wrong)
            self.faults.append(error)
        finally:
            writer.close()
            self._writers.pop(writer)
            with suppress(OSError):
                await writer.wait_closed()

    def _answer(self, broker: int, frame: bytes) -> bytes | None:
        """None: the connection ends."""
        header = codec.decode_header(frame)
        asked = Asked(
            broker=broker,
            api=header.api_key,
            version=header.api_version,
            correlation_id=header.correlation_id,
            message=codec.decode_body(header, frame),
        )
        self.asked.append(asked)
        reply = self.scripts.get(asked.api, self._usual)(asked)
        match reply:
            case Frame():
                return reply.data
            case type():
                return None if reply is Closed else b""
            case _:
                return asked.encoded(**reply)

    def _usual(self, asked: Asked) -> Reply:
        match asked.api:
            case 18:
                served = self.served.items()
                keys = (
                    {"api_key": key, "min_version": low, "max_version": high}
                    for key, (low, high) in sorted(served)
                )
                return {"error_code": 0, "api_keys": tuple(keys)}
            case 3:
                return self.metadata(asked)
            case 10:
                return self._coordinator(asked)
        raise AssertionError(f"no script answers API {asked.api}")


async def _frame_of(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)
