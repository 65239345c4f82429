"""The sections ``[access]``, ``[roles]`` and ``[[masking]]`` of the settings: logins, what a role
may do, and which fields of records are masked."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from control.access.masking import FieldPath, MaskingRule
from control.access.roles import BUILT_IN, EVERY_OPERATION, EVERY_TOPIC, Role
from control.model.units import parse_duration
from partiscope.setting_types import SettingPath, Text

USERS_FILE: Final = "users.json"
TOKENS_FILE: Final = "tokens.json"
SESSION_S_MIN: Final = 60.0
SESSION_S_MAX: Final = 30 * 86_400.0
TOPICS_MAX: Final = 1_000
ROLES_MAX: Final = 100
RULES_MAX: Final = 1_000
FIELDS_MAX: Final = 1_000


class RoleSettings(BaseModel):
    """A role of one's own."""

    model_config = ConfigDict(extra="forbid")

    operations: tuple[str, ...] = ()
    topics: tuple[Text, ...] = Field(default=EVERY_TOPIC, min_length=1, max_length=TOPICS_MAX)
    records: bool = False
    """Whether it reads records."""
    unmasked: bool = False
    """Whether it reads them as they are, whatever ``[[masking]]`` says."""

    @field_validator("operations")
    @classmethod
    def _check_operations(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in EVERY_OPERATION:
                known = ", ".join(sorted(EVERY_OPERATION))
                raise ValueError(f"{name!r} is no operation; there are {known}")
        return names


class MaskingSettings(BaseModel):
    """Fields of records that nobody sees."""

    model_config = ConfigDict(extra="forbid")

    topics: tuple[Text, ...] = Field(min_length=1, max_length=TOPICS_MAX)
    fields: tuple[Text, ...] = Field(min_length=1, max_length=FIELDS_MAX)
    clusters: tuple[Text, ...] = Field(default=(), max_length=TOPICS_MAX)

    @field_validator("fields")
    @classmethod
    def _check_fields(cls, fields: tuple[str, ...]) -> tuple[str, ...]:
        for text in fields:
            FieldPath.of(text)
        return fields

    @property
    def rule(self) -> MaskingRule:
        """As records are masked by it."""
        fields = tuple(map(FieldPath.of, self.fields))
        return MaskingRule(topics=self.topics, fields=fields, clusters=self.clusters)


class AccessSettings(BaseModel):
    """Logins of the page."""

    model_config = ConfigDict(extra="forbid")

    users_file: SettingPath | None = None
    """Default: ``users.json`` in the data directory. Where it is there, logins are asked for."""
    tokens_file: SettingPath | None = None
    """Default: ``tokens.json`` in the data directory. Programs use the API by these tokens."""
    session: str = "12h"
    """How long a login lasts."""
    proxy_header: str | None = Field(default=None, pattern=r"^[A-Za-z][A-Za-z0-9-]{0,99}$")
    """Header in which a trusted proxy names who has logged in there."""
    proxy_address: str | None = None
    """The one IP address from which that header is believed."""

    @field_validator("session")
    @classmethod
    def _check_session(cls, text: str) -> str:
        held_ms = parse_duration(text)
        if held_ms is None or not SESSION_S_MIN <= held_ms / 1000 <= SESSION_S_MAX:
            raise ValueError(f"{text!r} is no time from 1m to 30d, such as 12h")
        return text

    @field_validator("proxy_address")
    @classmethod
    def _check_address(cls, text: str | None) -> str | None:
        return None if text is None else str(ip_address(text))

    @model_validator(mode="after")
    def _check_proxy(self) -> "AccessSettings":
        if (self.proxy_header is None) != (self.proxy_address is None):
            raise ValueError("proxy_header and proxy_address are set together, or neither")
        return self

    @property
    def session_s(self) -> float:
        """In seconds."""
        return (parse_duration(self.session) or 0) / 1000


def roles_of(declared: Mapping[str, RoleSettings]) -> dict[str, Role]:
    """Every role by name, those that are built in among them."""
    own = {
        name: Role(
            name=name,
            operations=frozenset(it.operations),
            topics=it.topics,
            may_read_records=it.records,
            sees_unmasked=it.unmasked,
        )
        for name, it in declared.items()
    }
    return {**own, **BUILT_IN}
