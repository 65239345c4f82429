"""Random requests and metadata records: small pools, so that what they name often exists, and the
edges of every type."""

import datetime
import math
import random
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial._introspect import EntityField, EntityTupleField, classify_field
from kio.static.primitive import Records

from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from tests.support.mutations import mutated

INTEGERS: Final = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 101, 102, 2**31 - 1, 2**40, 2**63 - 1)
TEXTS: Final = ("", "t", "u", "..", "a/b", "__cluster_metadata", "__consumer_offsets", "101")
MORE_TEXTS: Final = ("retention.ms", "max.connections", "-1", "true", "x" * 300, "Grüße")
UUIDS: Final = tuple(UUID(int=n) for n in (0, 1, 7, 8))
BATCH: Final = build_batch([NewRecord(key=b"k", value=b"value", timestamp=1_700_000_000_000)])
NESTED_MAX: Final = 3
FLOATS: Final = (0.0, 0.5, -1.0, 1e300, math.inf)
_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def random_text(dice: random.Random) -> str:
    """A name, a value, or neither."""
    return dice.choice(TEXTS + MORE_TEXTS)


def random_record(dice: random.Random, record_type: type) -> Any:
    """A metadata record with its fields drawn by their types."""
    hints = get_type_hints(record_type)
    return record_type(**{name: _of_type(dice, hint) for name, hint in hints.items()})


def _of_type(dice: random.Random, hint: Any) -> Any:
    if isinstance(hint, UnionType):
        if dice.random() < 0.3:
            return None
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) is tuple:
        return tuple(_of_type(dice, get_args(hint)[0]) for _ in range(dice.randrange(3)))
    if is_dataclass(hint):
        return random_record(dice, hint)  # type: ignore[arg-type]
    drawn = {
        bool: dice.random() < 0.5,
        int: dice.choice(INTEGERS) if dice.random() < 0.3 else dice.choice((0, 1, 101)),
        str: random_text(dice),
        bytes: dice.randbytes(dice.randrange(40)),
        float: dice.choice(FLOATS),
        UUID: dice.choice(UUIDS),
    }
    return drawn[hint]


def random_request(dice: random.Random, api_key: int, version: int) -> Any:
    """A request that its schema allows."""
    return _entity(dice, codec.request_type(api_key, version))


def _entity(dice: random.Random, entity_type: type[Any]) -> Any:
    return entity_type(**{field.name: _field(dice, field) for field in fields(entity_type)})


def _field(dice: random.Random, field: Any) -> Any:
    shape = classify_field(field)
    is_optional = getattr(shape, "is_optional", False) or "None" in str(field.type)
    if is_optional and dice.random() < 0.3:
        return None
    if isinstance(shape, EntityTupleField | EntityField):
        if not shape.is_array:
            return _entity(dice, shape.type_)
        return tuple(_entity(dice, shape.type_) for _ in range(dice.randrange(NESTED_MAX)))
    kind = field.metadata["kafka_type"]
    if shape.is_array:
        return tuple(_scalar(dice, kind) for _ in range(dice.randrange(NESTED_MAX)))
    return _scalar(dice, kind)


def _scalar(dice: random.Random, kind: str) -> Any:
    if kind in _BITS:
        limit = 1 << (_BITS[kind] - 1)
        return max(-limit, min(dice.choice(INTEGERS), limit - 1))
    if kind.startswith("uint"):
        return dice.choice((0, 1, (1 << int(kind[4:])) - 1))
    drawn: dict[str, Any] = {
        "error_code": ErrorCode.none,
        "timedelta_i32": datetime.timedelta(milliseconds=dice.choice((0, 1, 2**31 - 1))),
        "timedelta_i64": datetime.timedelta(milliseconds=dice.choice((0, 1, 2**40))),
        "datetime_i64": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        "uuid": dice.choice(UUIDS[1:]),
        "bool": dice.random() < 0.5,
        "string": random_text(dice),
        "bytes": dice.randbytes(dice.randrange(40)),
        "records": Records(mutated(dice, BATCH) if dice.random() < 0.7 else dice.randbytes(99)),
        "float64": dice.choice((0.0, -1.0, float("nan"), float("inf"))),
    }
    return drawn[kind]
