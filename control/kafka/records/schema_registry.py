"""Schemas of a registry that speaks Confluent's API, by the ids that messages carry.

Called from threads, never from an event loop. No request outlasts the registry's timeout, and a
registry that failed is left alone for a while: whoever reads messages shows their bytes meanwhile.
What it answers is not trusted: whatever is wrong with it becomes a ``RegistryError``.
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
from http.client import HTTPException
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, urlsplit

from control.kafka.connection.http_deadline import connected_until
from control.kafka.connection.settings import RegistrySettings

SCHEMAS_MAX: Final = 1_000
SCHEMAS_BYTES_MAX: Final = 32 << 20
"""Of all schemas that are kept; the one unused for longest goes first."""
ANSWER_BYTES_MAX: Final = 4 << 20
"""Of one schema, with those that it refers to."""
WORDS_MAX: Final = 500
"""Characters of an error: it may quote what the registry or a schema says."""
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
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"


class RegistryError(Exception):
    """The registry does not give a schema; the text says why, beside the raw bytes."""

    def __init__(self, words: str) -> None:
        super().__init__(shortened(words))


class UnknownSchemaError(RegistryError):
    """The registry has no schema with this id."""


def shortened(words: str, most: int = WORDS_MAX) -> str:
    """At most so many characters, which UTF-8 can hold."""
    cut = words if len(words) <= most else f"{words[:most]}…"
    return cut.encode(errors="replace").decode()


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
        try:
            found = self._ask_schema(schema_id, _Allowance(self.settings.timeout_s))
        except Exception as error:
            known = error
            if not isinstance(known, RegistryError):
                words = f"schema {schema_id} is not given as the API has it ({error})"
                known = RegistryError(words)
            self._handle_failure(schema_id, known)
            raise known from error
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
            status, _ = self._body(url, _Allowance(min(PROBE_S, self.settings.timeout_s)))
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

    def _ask_schema(self, schema_id: int, allowance: _Allowance) -> Schema:
        try:
            document = self._ask(f"schemas/ids/{schema_id}", allowance)
        except _MissingError:
            raise _unknown(schema_id) from None
        kind = document.get("schemaType") or SchemaKind.AVRO
        if str(kind) not in SchemaKind.__members__ or not isinstance(document.get("schema"), str):
            raise RegistryError(f"schema {schema_id} is of a kind that is not known: {kind!r}")
        found: dict[str, Reference] = {}
        self._add_references(document, found, allowance)
        return Schema(
            schema_id=schema_id,
            kind=SchemaKind(kind),
            text=document["schema"],
            references=tuple(found.values()),
        )

    def _add_references(
        self, document: dict[str, Any], found: dict[str, Reference], allowance: _Allowance
    ) -> None:
        for each in document.get("references") or ():
            match each:
                case {"name": str(name), "subject": str(subject), "version": int() | str() as at}:
                    version = quote(str(at), safe="")
                case _:
                    raise RegistryError("a reference of the schema names no subject and version")
            if subject in (".", ".."):
                raise RegistryError(f"the schema refers to {subject!r}, which is no subject")
            if name in found:
                continue
            if len(found) >= REFERENCES_MAX:
                raise RegistryError(f"the schema refers to more than {REFERENCES_MAX} others")
            path = f"subjects/{quote(subject, safe='')}/versions/{version}"
            try:
                told = self._ask(path, allowance)
            except _MissingError:
                words = f"the schema refers to {subject} version {version}, which is not there"
                raise RegistryError(words) from None
            if not isinstance(text := told.get("schema"), str):
                raise RegistryError(f"{subject} version {version} is given without a schema")
            # Held before its own references are read: a circle of them ends here.
            found[name] = Reference(name=name, text=text)
            self._add_references(told, found, allowance)
            found[name] = found.pop(name)

    def _ask(self, path: str, allowance: _Allowance) -> dict[str, Any]:
        url = f"{self.settings.url.rstrip('/')}/{path}"
        host = urlsplit(self.settings.url).netloc.rpartition("@")[2]
        try:
            status, body = self._body(url, allowance)
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

    def _body(self, url: str, allowance: _Allowance) -> tuple[int, bytes]:
        """Status and body; a redirect is not followed: it might carry our password elsewhere.

        :raises OSError: no whole answer came in time.
        """
        where = urlsplit(url)
        headers = {"accept": _ACCEPT, **_authorization(self.settings)}
        try:
            context = self.settings.ssl_context
            with connected_until(url, context, allowance.deadline_s) as connection:
                connection.request("GET", where.path, headers=headers)
                with closing(connection.getresponse()) as answer:
                    body = answer.read(allowance.bytes_left + 1)
        except (OSError, HTTPException) as error:
            if isinstance(error, TimeoutError) or allowance.left_s <= 0:
                raise TimeoutError(_TOO_LONG) from None
            words = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise OSError(words.rpartition("] ")[2].rpartition(": ")[2]) from error
        if allowance.left_s <= 0:
            raise TimeoutError(_TOO_LONG)
        if len(body) > allowance.bytes_left:
            words = "the schema, with those that it refers to,"
            raise RegistryError(f"{words} is larger than {ANSWER_BYTES_MAX >> 20} MiB")
        if answer.length:
            raise OSError("its answer ends too early")
        allowance.bytes_left -= len(body)
        return answer.status, body


class _Allowance:
    """Time and bytes that one schema may take, with those that it refers to."""

    def __init__(self, timeout_s: float) -> None:
        self.bytes_left = ANSWER_BYTES_MAX
        self.deadline_s = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """Until its deadline."""
        return self.deadline_s - time.monotonic()


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
