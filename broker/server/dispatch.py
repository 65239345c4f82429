"""From a frame to the handler that answers it.

Kafka handles one request of a connection at a time. Here plain and slot handlers (Produce and
Fetch among them) run at once, pipelined; while a coroutine handler runs, later requests of the
same connection wait, so that a client's commit is done before its leave is looked at. They also
wait, and nobody else does, while a thread prepares for the first request of an API and version.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import LARGE_BYTES, in_thread_if_large, log_failure
from broker.handlers.k18_api_versions import build_api_versions
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import NOT_AUTHORIZED, Api, HandlerKind, HandlerRegistry
from broker.handlers.request_time import RequestTime, timed
from broker.handlers.services import Request
from broker.metadata.authorization import CLUSTER
from broker.protocol import codec
from broker.protocol.errors import ProtocolError, RequestHeader, UnsupportedVersionError
from broker.protocol.frames import RequestMemory
from broker.protocol.request_context import RequestContext
from broker.server.listener_context import ListenerContext
from broker.server.response_queue import ResponseQueue, Slot
from broker.server.sasl import (
    FAILED_DELAY_S,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Login,
    LoginError,
)
from broker.server.throttling import Muting, told_throttle_ms, with_throttle

API_VERSIONS = 18
WRITE_TXN_MARKERS = 27
"""Only brokers ask for it: as in Kafka no quota holds it up."""
_NO_FRAME = memoryview(b"")

log = logging.getLogger(__name__)


class Dispatcher:
    """The requests of one connection.

    `refuse(reason)` ends the connection; `on_progress()` is called when deferred requests went on.
    """

    __slots__ = (
        "_context",
        "_deferred",
        "_is_busy",
        "_is_open",
        "_is_resuming",
        "_login",
        "_muting",
        "_on_progress",
        "_queue",
        "_refuse",
        "_requests",
    )

    def __init__(
        self,
        context: ListenerContext,
        queue: ResponseQueue,
        refuse: Callable[[str], None],
        on_progress: Callable[[], None],
    ) -> None:
        self._context = context
        self._queue = queue
        self._refuse = refuse
        self._on_progress = on_progress
        self._requests = RequestContext(listener_name=context.listener_name)
        self._deferred: deque[bytes] = deque()
        self._is_busy = False
        self._is_resuming = False
        self._is_open = True
        self._muting = Muting(context.node.clock, self._muting_changed)
        queue.on_throttle = self._muting.begin
        self._login: Login | None = None
        if context.sasl is not None:
            assert context.scram is not None
            self._login = Login(context.sasl, context.scram)

    def open(self, requests: RequestContext) -> None:
        """The connection stands; `requests` is the context of those that come over it."""
        self._requests = requests

    def close(self) -> None:
        """The connection has gone: nothing that waits is handled any more."""
        self._is_open = False
        self._context.memory.give(sum(map(len, self._deferred)))
        self._deferred.clear()
        self._muting.end()
        # Nothing of a connection refers back to it, so that it is freed at once.
        self._refuse, self._on_progress = _to_nobody, _to_nobody

    @property
    def is_logged_in(self) -> bool:
        """Whether it has, or need not."""
        return self._login is None or self._login.principal is not None

    @property
    def deferred_count(self) -> int:
        """Requests that wait for their turn on this connection."""
        return len(self._deferred)

    def take(self, frame: memoryview) -> None:
        """Handle one frame, or keep a copy of it until its turn."""
        if not self._is_open:
            return
        if self._is_held or self._deferred:
            self._deferred.append(self._context.memory.keep(frame))
            return
        self._handle(frame)

    @property
    def _is_held(self) -> bool:
        return self._is_busy or self.is_muted or self._queue.is_full

    @property
    def is_muted(self) -> bool:
        """Whether its client is not heard for a while: nothing is read meanwhile."""
        return self._muting.is_on

    def _muting_changed(self) -> None:
        self.resume()
        self._on_progress()

    def resume(self) -> None:
        """Handle what was put off, as far as there is room for its answers."""
        if not self._deferred or self._is_resuming:
            return  # while it is resuming an answer was written: the loop below goes on
        self._is_resuming = True
        try:
            while self._deferred and not self._is_held:
                frame = self._deferred.popleft()
                self._handle(memoryview(frame))
                self._context.memory.give(len(frame))
        finally:
            self._is_resuming = False

    def _handle(self, frame: memoryview) -> None:
        if self._login is not None and self._login.takes_bare_tokens:
            self._take_bare_token(self._login, bytes(frame))
            return
        if self._must_prepare(frame):
            self._deferred.appendleft(self._context.memory.keep(frame))
            return
        try:
            self._dispatch(frame)
        except ProtocolError as error:
            self._refuse(str(error))

    def _must_prepare(self, frame: memoryview) -> bool:
        """Whether it is the first of its kind: a thread has begun what it needs."""
        kind = codec.kind_of(frame)
        if codec.is_prepared(kind):
            return False
        api = self._context.registry.find(kind[0])
        if api is None or not api.serves(kind[1]):
            return False
        self._begin(self._prepare(*kind))
        return True

    async def _prepare(self, api_key: int, api_version: int) -> None:
        try:
            await asyncio.to_thread(codec.prepare, api_key, api_version)
        except Exception:  # what lacks is told when it is used
            log.exception("API %d version %d was not prepared", api_key, api_version)
        self._go_on()

    def _dispatch(self, frame: memoryview) -> None:
        header = codec.decode_header(frame)
        api = self._context.registry.find(header.api_key)
        if api is None or not api.serves(header.api_version):
            if api is not None and header.api_key == API_VERSIONS:
                answer = _unknown_api_versions(self._context.registry, header)
                self._queue.new_slot().complete((answer,))
                return
            raise UnsupportedVersionError(header)
        if header.client_id != self._requests.client_id:
            self._requests = replace(self._requests, client_id=header.client_id)
        request = Request(header, frame, self._requests)
        if self._login is not None and not self._may_pass(self._login, request):
            return
        is_timed = self._context.is_throttled and api.api_key != WRITE_TXN_MARKERS
        if is_timed and self._context.node.quotas.times_requests:
            request.time = RequestTime()
        slot = self._queue.new_slot()
        is_decoded_later = api.kind is HandlerKind.TASK and len(frame) >= LARGE_BYTES
        denial = None if is_decoded_later else self._denial(api, request)
        if denial is not None:
            self._answer_error(request, slot, denial)
        elif api.kind is HandlerKind.TASK:
            self._start(api, request, slot)
        else:
            self._call(api, request, slot)

    def _may_pass(self, login: Login, request: Request) -> bool:
        """Whether it is a request for a handler: steps of a login are answered here."""
        if login.principal is not None or request.api_key == API_VERSIONS:
            return True
        if request.api_key == SASL_HANDSHAKE:
            self._choose_mechanism(login, request)
        elif request.api_key == SASL_AUTHENTICATE:
            self._take_token(login, request)
        else:
            raise ProtocolError(f"API {request.api_key} was asked for before a login")
        return False

    def _choose_mechanism(self, login: Login, request: Request) -> None:
        is_spoken = login.choose(request.message.mechanism, request.api_version)
        error = ErrorCode.none if is_spoken else ErrorCode.unsupported_sasl_mechanism
        answer = codec.build_response(
            SASL_HANDSHAKE,
            request.api_version,
            error_code=error,
            mechanisms=login.config.mechanisms,
        )
        self._end_login(_encode(request, answer), "" if is_spoken else "unsupported SASL mechanism")

    def _take_token(self, login: Login, request: Request) -> None:
        fields: dict[str, Any] = {}
        why = ""
        try:
            fields["auth_bytes"] = login.take(bytes(request.message.auth_bytes))
        except LoginError as error:
            why = str(error)
            failed = ErrorCode.sasl_authentication_failed
            fields = {"error_code": failed, "error_message": why, "auth_bytes": b""}
        answer = codec.build_response(SASL_AUTHENTICATE, request.api_version, **fields)
        self._end_login(_encode(request, answer), why)

    def _take_bare_token(self, login: Login, token: bytes) -> None:
        """As clients send it behind a handshake of version 0; a failure is told by the end."""
        try:
            answer = login.take(token)
        except LoginError as error:
            self._refuse(f"login: {error}")
            return
        self._end_login(len(answer).to_bytes(4, "big") + answer, "")

    def _end_login(self, answer: bytes, why: str) -> None:
        """Answer a step; where it failed, later, and then end the connection."""
        slot = self._queue.new_slot()
        if why:
            self._begin(self._fail_login(slot, answer, why))
            return
        if self._login is not None and self._login.principal is not None:
            self._requests = replace(self._requests, principal=self._login.principal)
        slot.complete((answer,))

    async def _fail_login(self, slot: Slot, answer: bytes, why: str) -> None:
        await asyncio.sleep(FAILED_DELAY_S)
        slot.complete((answer,))
        self._queue.new_slot().close_connection(f"login: {why}")

    def _denial(self, api: Api, request: Request) -> ErrorCode | None:
        """Why the request is refused as a whole."""
        authorization = self._context.node.authorization
        if not api.rights or not authorization.is_enabled:
            return None
        for right in api.rights:
            name = getattr(request.message, right.field) if right.field else CLUSTER.name
            if authorization.is_refused(request.context, right.operation, right.kind, name):
                return NOT_AUTHORIZED[right.kind]
        return None

    def _start(self, api: Api, request: Request, slot: Slot) -> None:
        size_bytes = len(request.frame)
        if size_bytes < LARGE_BYTES:
            request.decode()
            request.frame = _NO_FRAME  # what waits must not keep the buffer it came in
        else:
            request.frame = memoryview(self._context.memory.keep(request.frame))
        self._begin(self._run(api, request, slot, size_bytes))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Later requests wait until it calls `_go_on`."""
        self._is_busy = True

        def failed(owner: str, error: Exception) -> None:
            log_failure(owner, error)
            # Later requests would wait for it for ever.
            self._refuse("an internal error kept a request from being answered")

        self._context.tasks.start(work, failed)

    def _go_on(self) -> None:
        self._is_busy = False
        self.resume()
        self._on_progress()

    def _call(self, api: Api, request: Request, slot: Slot) -> None:
        if request.time is not None:
            request.time.begin()
        try:
            if api.kind is HandlerKind.SLOT:
                api.handler(request, self._context.node, slot)
            else:
                self._respond(request, slot, api.handler(request, self._context.node))
        except ProtocolError:
            raise
        except Exception:  # noqa: BLE001  # one bad request must not end the broker
            self._handler_failed(request, slot)
        if request.time is not None:
            request.time.end()

    def _respond(self, request: Request, slot: Slot, message: Any) -> None:
        """Complete a slot with what a handler returned."""
        slot.complete((_encode(request, self._throttled(request, slot, message)),))

    def _throttled(self, request: Request, slot: Slot, message: Any) -> Any:
        """The answer, with the throttle that it tells of; its client is muted for so long."""
        if not self._context.is_throttled or not self._context.node.quotas.is_enabled:
            return message
        quotas, told_ms = self._context.node.quotas, told_throttle_ms(message)
        time_ms = max(told_ms, quotas.record_request(request.context, request.spent_ns))
        if time_ms:
            slot.throttle(time_ms)
        return with_throttle(request, message, time_ms)

    async def _run(self, api: Api, request: Request, slot: Slot, size_bytes: int) -> None:
        try:
            if request.frame:
                await _decode_large(request, self._context.memory)
                denial = self._denial(api, request)
                if denial is not None:
                    self._answer_error(request, slot, denial)
                    self._go_on()
                    return
            work = api.handler(request, self._context.node)
            answer = await (work if request.time is None else timed(request.time, work))
            answer = self._throttled(request, slot, answer)
            if isinstance(answer, LargeAnswer) and answer.is_large:
                size_bytes = max(size_bytes, LARGE_BYTES)
            slot.complete((await in_thread_if_large(size_bytes, _encode, request, answer),))
        except ProtocolError as error:
            self._refuse(str(error))
        except Exception:  # noqa: BLE001  # one bad request must not end the broker
            self._handler_failed(request, slot)
        self._go_on()

    def _handler_failed(self, request: Request, slot: Slot) -> None:
        """A bug: keep its story, and tell the client UNKNOWN_SERVER_ERROR where that fits."""
        header = request.header
        log.exception("handler of API %d v%d failed", header.api_key, header.api_version)
        if slot.parts is None:
            self._answer_error(request, slot, ErrorCode.unknown_server_error)

    def _answer_error(self, request: Request, slot: Slot, error: ErrorCode) -> None:
        """An answer that is nothing but an error, where the API has such a one."""
        header = request.header
        entity_type = codec.response_type(header.api_key, header.api_version)
        if "error_code" not in entity_type.__dataclass_fields__:
            self._refuse(f"API {header.api_key}: its response cannot say {error.name}")
            return
        message = codec.build_response(header.api_key, header.api_version, error_code=error)
        self._respond(request, slot, message)


def _unknown_api_versions(registry: HandlerRegistry, header: RequestHeader) -> bytes:
    message = build_api_versions(registry, 0, ErrorCode.unsupported_version)
    return codec.encode_response(API_VERSIONS, 0, header.correlation_id, message)


def _to_nobody(*_: object) -> None:
    """In place of a connection that has gone."""


async def _decode_large(request: Request, memory: RequestMemory) -> None:
    try:
        await in_thread_if_large(len(request.frame), request.decode)
    finally:
        memory.give(len(request.frame))
        request.frame = _NO_FRAME


def _encode(request: Request, message: Any) -> bytes:
    """The frame of what a handler returned: an entity or a whole frame."""
    if message is None:
        raise TypeError(f"the handler of API {request.api_key} returned nothing")
    if isinstance(message, bytes):
        return message
    header = request.header
    if isinstance(message, LargeAnswer):
        message = message.build(header.api_key, header.api_version)
    return codec.encode_response(header.api_key, header.api_version, header.correlation_id, message)
