"""Base of the operations that cordon and uncordon log directories of a broker (KIP-1066)."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

from control.kafka.acl import AclOperation, Lacking
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope, LogDir
from control.operations import checks
from control.operations.catalogue.fields import BROKER, REASON
from control.operations.catalogue.forms import Confirmation, FormField, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import InvalidInputError

CONFIG: Final = "cordoned.log.dirs"
ALL: Final = "*"
"""As the config's value: every log directory."""
PROPERTIES_FILE: Final = 4
"""``ConfigSynonym.source`` of what the broker's own file says."""
DIRECTORIES: Final = FormField(
    name="directories", label="Log directories", help="paths with commas between; all"
)


def cordon_form(name: str, *, key: str, title: str, about: str) -> OperationForm:
    """The form of either operation."""
    return OperationForm(
        name=name,
        key=key,
        title=title,
        help=about,
        submit_label=title.split()[0],
        confirmation=Confirmation.PREVIEW,
        fields=(BROKER, DIRECTORIES, REASON),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordoning(Operation):
    """Some or all log directories of one broker."""

    RIGHTS: ClassVar[Lacking] = ((AclOperation.ALTER_CONFIGS, "cluster"),)
    VERB: ClassVar[str]

    broker: int
    directories: tuple[str, ...] = ()
    """Their paths; empty: all."""
    value: str | None = None
    """Of the frozen command: what the config is set to; None: its setting is removed."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(
            broker=int(fields["broker"]),
            directories=tuple(checks.split_pairs(fields["directories"])),
            reason=fields["reason"],
        )

    @property
    def what(self) -> str:
        """For the journal."""
        named = f" {', '.join(self.directories)} of" if self.directories else ""
        return f"{self.VERB}{named} broker {self.broker}"

    @property
    def resource(self) -> ConfigResource:
        """The broker: no other scope takes the config."""
        return ConfigResource(scope=ConfigScope.BROKER, name=str(self.broker))

    @abstractmethod
    def cordoned_then(self, paths: Collection[str], now: Collection[str]) -> frozenset[str]:
        """The cordoned ones of ``paths`` afterwards; ``now`` are those of before."""

    @abstractmethod
    def notes(self, held: Iterable[LogDir], *, are_all_cordoned: bool) -> tuple[str, ...]:
        """Notes for the operator to consider."""

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """Each directory that is cordoned or uncordoned.

        :raises InvalidInputError: no such broker is alive, no such directory, or the broker cannot
            cordon any (before Kafka 4.3).
        :raises RefusedError: the cluster does not take it.
        """
        admin = context.admin
        entry = await self._entry(admin)
        held = await admin.log_dirs([self.broker])
        paths = [log_dir.path for log_dir in held]
        unknown = [path for path in self.directories if path not in paths]
        if unknown:
            known = ", ".join(paths)
            words = f"broker {self.broker} has no {', '.join(unknown)}; it has {known}"
            raise InvalidInputError({"directories": words})
        now = cordoned_in(entry.value, paths)
        then = self.cordoned_then(paths, now)
        if then == now:
            return Effect(command=self, changes=())
        command = replace(self, value=_value(then, paths, entry))
        await admin.alter_configs(self.resource, {CONFIG: command.value}, validate_only=True)
        return Effect(
            command=command,
            changes=tuple(
                Change(path, _state(path in now), _state(path in then))
                for path in paths
                if (path in now) != (path in then)
            ),
            notes=self.notes(held, are_all_cordoned=then == frozenset(paths)),
            facts=(entry.value, tuple(paths)),
        )

    async def perform(self, context: OperationContext) -> Done:
        """Set or remove the config of the broker."""
        await context.admin.alter_configs(self.resource, {CONFIG: self.value})
        named = ", ".join(self.directories) or f"broker {self.broker}"
        words = f"{named}: {self.VERB}ed; the controller hears of it within seconds"
        return Done(words=words, view="broker", params={"broker": str(self.broker)})

    async def _entry(self, admin: KafkaAdmin) -> ConfigEntry:
        alive = [broker.id for broker in (await admin.describe_cluster()).brokers]
        if self.broker not in alive:
            known = ", ".join(map(str, alive))
            raise InvalidInputError({"broker": f"no broker {self.broker} is alive; {known} are"})
        found = await admin.describe_configs(self.resource, (CONFIG,), is_explained=True)
        for entry in found:
            return entry
        words = f"broker {self.broker} has no config {CONFIG}: Kafka cordons from 4.3 on"
        raise InvalidInputError({"broker": words})


def cordoned_in(value: str | None, paths: Collection[str]) -> frozenset[str]:
    """The cordoned ones of ``paths``, as the config's value names them."""
    named = {path.strip() for path in (value or "").split(",")}
    return frozenset(path for path in paths if ALL in named or path in named)


def _value(then: frozenset[str], paths: Collection[str], entry: ConfigEntry) -> str | None:
    if then == frozenset(paths):
        return ALL
    if then:
        return ",".join(path for path in paths if path in then)
    in_file = any(it.source == PROPERTIES_FILE and it.value for it in entry.synonyms)
    return "" if in_file else None


def _state(is_cordoned: bool) -> str:
    return "cordoned" if is_cordoned else "open"
