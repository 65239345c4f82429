"""Schemas of a registry that speaks Confluent's API, by the ids that messages carry.

Called from threads, never from an event loop. No request outlasts the registry's timeout, and a
registry that failed is left alone for a while: whoever reads messages shows their bytes meanwhile.
"""

from __future__ import annotations

import base64
import json
import time
from collections import OrderedDict
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from control.kafka.connection.settings import RegistrySettings

if TYPE_CHECKING:
    import urllib3

SCHEMAS_MAX: Final = 1_000
SCHEMAS_BYTES_MAX: Final = 32 << 20
"""Of all schemas that are kept; the one unused for longest goes first."""
ANSWER_BYTES_MAX: Final = 4 << 20
REFERENCES_MAX: Final = 200
"""Of one schema, theirs included."""
RESTS_S: Final = 10.0
"""A registry that does not answer is asked again after so long."""
PROBE_S: Final = 1.0
"""Where a schema does not come in time, the registry has so long to answer another question."""
UNKNOWN_S: Final = 60.0
"""An id that the registry does not know is asked for again after so long."""
FAILED_MAX: Final = 100
"""Schemas that failed within these times, after which further ones are not asked for: bytes that
only look like messages with a schema must not become a flood of requests."""
_OF_ONE_SCHEMA: Final = (400, 403, 422, 500)
"""Other schemas may be given all the same."""
_IN_VAIN: Final = (408, 502, 504)
"""A proxy's word for no answer in time."""
_TOO_LONG: Final = "it takes too long"
_CHUNK_BYTES: Final = 64 << 10
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"


class RegistryError(Exception):
    """The registry does not give a schema; the text says why, beside the raw bytes."""


class UnknownSchemaError(RegistryError):
    """The registry has no schema with this id."""


class SchemaKind(StrEnum):
    """Names as the API has them."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A schema that another one refers to by `name`."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A schema; `references` come in the order in which each needs only those before it."""

    schema_id: int
    kind: SchemaKind
    text: str
    references: tuple[Reference, ...] = ()

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory."""
        return len(self.text) + sum(len(each.text) for each in self.references)


class SchemaRegistry:
    """A client with a bounded cache, safe for several threads."""

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self._lock = Lock()
        self._schemas: OrderedDict[int, Schema] = OrderedDict()
        self._size_bytes = 0
        self._failed: dict[int, tuple[float, RegistryError]] = {}
        """Until when, and why, schemas are not asked for."""
        self._failure = ""
        self._rests_until_s = 0.0

    def schema(self, schema_id: int) -> Schema:
        """The schema with this id.

        :raises UnknownSchemaError: there is none.
        :raises RegistryError: the registry refuses, does not answer, or did not a moment ago.
        """
        if (kept := self._kept(schema_id)) is not None:
            return kept
        self._check_failed(schema_id)
        self._check_rest()
        deadline_s = time.monotonic() + self.settings.timeout_s
        try:
            found = self._ask_schema(schema_id, deadline_s)
        except RegistryError as error:
            self._handle_failure(schema_id, error)
            raise
        self._keep(found)
        return found

    def _handle_failure(self, schema_id: int, error: RegistryError) -> None:
        """A schema that does not come in time says nothing of the others, if anything comes."""
        is_slow = isinstance(error, _SlowError) and self._is_answering()
        with self._lock:
            if isinstance(error, _SilentError) and not is_slow:
                self._failure = str(error)
                self._rests_until_s = time.monotonic() + RESTS_S
            else:
                left_s = UNKNOWN_S if isinstance(error, UnknownSchemaError) else RESTS_S
                self._failed[schema_id] = (time.monotonic() + left_s, error)

    def _is_answering(self) -> bool:
        """Whether it answers another question at once."""
        url = f"{self.settings.url.rstrip('/')}/schemas/types"
        try:
            status, _ = self._body(url, time.monotonic() + min(PROBE_S, self.settings.timeout_s))
        except (OSError, RegistryError):
            return False
        return status not in _IN_VAIN

    def _kept(self, schema_id: int) -> Schema | None:
        with self._lock:
            found = self._schemas.get(schema_id)
            if found is not None:
                self._schemas.move_to_end(schema_id)
            return found

    @property
    def _has_answered(self) -> bool:
        """Whether it has given a schema: address and login are right then."""
        return bool(self._schemas)

    def _keep(self, schema: Schema) -> None:
        with self._lock:
            if schema.schema_id in self._schemas:
                return
            self._schemas[schema.schema_id] = schema
            self._size_bytes += schema.size_bytes
            while len(self._schemas) > SCHEMAS_MAX or self._size_bytes > SCHEMAS_BYTES_MAX:
                _, oldest = self._schemas.popitem(last=False)
                self._size_bytes -= oldest.size_bytes

    def _check_failed(self, schema_id: int) -> None:
        now_s = time.monotonic()
        with self._lock:
            fresh = {it: failed for it, failed in self._failed.items() if failed[0] > now_s}
            self._failed = fresh
        if schema_id in fresh:
            _, error = fresh[schema_id]
            raise type(error)(str(error))
        if len(fresh) >= FAILED_MAX:
            words = f"schema {schema_id} was not asked for: {FAILED_MAX} others failed just now"
            raise UnknownSchemaError(words)

    def _check_rest(self) -> None:
        with self._lock:
            failure, left_s = self._failure, self._rests_until_s - time.monotonic()
        if left_s > 0:
            raise RegistryError(f"{failure}; asked again in {left_s:.0f} s")

    def _ask_schema(self, schema_id: int, deadline_s: float) -> Schema:
        try:
            document = self._ask(f"schemas/ids/{schema_id}", deadline_s)
        except _MissingError:
            raise _unknown(schema_id) from None
        kind = document.get("schemaType") or SchemaKind.AVRO
        if kind not in SchemaKind.__members__ or not isinstance(document.get("schema"), str):
            raise RegistryError(f"schema {schema_id} is of a kind that is not known: {kind!r}")
        found: dict[str, Reference] = {}
        self._add_references(document, found, deadline_s)
        return Schema(
            schema_id=schema_id,
            kind=SchemaKind(kind),
            text=document["schema"],
            references=tuple(found.values()),
        )

    def _add_references(
        self, document: dict[str, Any], found: dict[str, Reference], deadline_s: float
    ) -> None:
        for each in document.get("references") or ():
            try:
                name, subject, version = str(each["name"]), str(each["subject"]), each["version"]
            except (TypeError, KeyError):
                raise RegistryError("a reference of the schema names no subject") from None
            if name in found:
                continue
            if len(found) >= REFERENCES_MAX:
                raise RegistryError(f"the schema refers to more than {REFERENCES_MAX} others")
            path = f"subjects/{quote(subject, safe='')}/versions/{quote(str(version), safe='')}"
            try:
                told = self._ask(path, deadline_s)
            except _MissingError:
                words = f"the schema refers to {subject} version {version}, which is not there"
                raise RegistryError(words) from None
            # Held before its own references are read: a circle of them ends here.
            found[name] = Reference(name=name, text=str(told.get("schema", "")))
            self._add_references(told, found, deadline_s)
            found[name] = found.pop(name)

    def _ask(self, path: str, deadline_s: float) -> dict[str, Any]:
        url = f"{self.settings.url.rstrip('/')}/{path}"
        host = urlsplit(self.settings.url).netloc.rpartition("@")[2]
        try:
            status, body = self._body(url, deadline_s)
        except OSError as error:
            words = f"the schema registry at {host} does not answer ({error})"
            raise (_SlowError if isinstance(error, TimeoutError) else _SilentError)(
                words
            ) from error
        if status in _IN_VAIN:
            raise _SlowError(f"the schema registry at {host} does not answer (HTTP {status})")
        document = _document(body)
        if status == 404 and (self._has_answered or _names_missing(document)):
            raise _MissingError
        if status == 401:
            words = f"the schema registry at {host} refuses us (HTTP {status}): check the user,"
            raise _SilentError(f"{words} password or token of schema_registry in the settings")
        if status in _OF_ONE_SCHEMA:
            words = f"the schema registry at {host} does not give {path} (HTTP {status})"
            hint = ": let its user read this schema" if status == 403 else ""
            raise RegistryError(words + hint)
        if status != 200:
            words = f"the schema registry at {host} answers with HTTP {status}"
            hint = ": check the path of its URL" if status in (301, 302, 307, 308, 404) else ""
            raise _SilentError(words + hint)
        if document is None and self._has_answered:
            raise RegistryError(f"the schema registry at {host} gives no JSON for {path}")
        if document is None:
            raise _SilentError(f"{host} does not answer as a schema registry does: check its URL")
        return document

    def _body(self, url: str, deadline_s: float) -> tuple[int, bytes]:
        """Status and body; a redirect is not followed: it might carry our password elsewhere.

        :raises OSError: no whole answer came in time.
        """
        import urllib3  # a tenth of a second, which most readers of messages never need

        left_s = max(0.001, deadline_s - time.monotonic())
        try:
            # Schemas are asked for once: a connection that waits for the next is not worth it.
            with urllib3.PoolManager(retries=False, ssl_context=self.settings.ssl_context) as pool:
                answer = pool.request(
                    "GET",
                    url,
                    headers={"accept": _ACCEPT, **_authorization(self.settings)},
                    timeout=urllib3.Timeout(total=left_s),
                    redirect=False,
                    preload_content=False,
                )
                with closing(answer):
                    return answer.status, _read_whole(answer, deadline_s)
        except urllib3.exceptions.NewConnectionError as error:
            raise OSError(str(error.__cause__ or error).rpartition("] ")[2]) from error
        except urllib3.exceptions.TimeoutError:
            raise TimeoutError(_TOO_LONG) from None
        except urllib3.exceptions.HTTPError as error:
            raise OSError(str(error).rpartition(": ")[2] or type(error).__name__) from error


def _read_whole(answer: urllib3.BaseHTTPResponse, deadline_s: float) -> bytes:
    body = bytearray()
    for chunk in answer.stream(_CHUNK_BYTES):
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise RegistryError(f"the schema is larger than {ANSWER_BYTES_MAX >> 20} MiB")
        if time.monotonic() > deadline_s:
            raise TimeoutError(_TOO_LONG)
    return bytes(body)


class _SilentError(RegistryError):
    """The registry as a whole gives nothing."""


class _SlowError(_SilentError):
    """No whole answer came in time."""


class _MissingError(Exception):
    """HTTP 404."""


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _names_missing(document: dict[str, Any] | None) -> bool:
    """Whether subject, version or schema is missing (40401 to 40403), not the path itself."""
    code = None if document is None else document.get("error_code")
    return isinstance(code, int) and code // 100 == 404


def _unknown(schema_id: int) -> UnknownSchemaError:
    return UnknownSchemaError(f"schema {schema_id} is not in the registry")


def _authorization(settings: RegistrySettings) -> dict[str, str]:
    if settings.token is not None:
        return {"authorization": f"Bearer {settings.token}"}
    if settings.username is not None:
        pair = f"{settings.username}:{settings.password or ''}".encode()
        return {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


@lru_cache(maxsize=64)
def registry_at(settings: RegistrySettings) -> SchemaRegistry:
    """One client, and one cache, for all that read by these settings."""
    return SchemaRegistry(settings)
