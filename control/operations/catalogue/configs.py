"""Base of the operations that configure a topic or a broker."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from broker.protocol.known_configs import ConfigType, problem_of_type
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import ConfigEntry, ConfigResource
from control.model.config_values import value_words
from control.model.ids import names_meant
from control.operations import checks
from control.operations.catalogue.forms import FormField
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import InvalidInputError

REMOVED: Final = "the default"
HIDDEN: Final = "(hidden)"
"""In place of a password, which no screen and no journal shows."""
CONFIGS: Final = FormField(
    name="configs",
    label="Configs",
    help="name=value, …",
    is_required=True,
    check=checks.config_pairs,
)


def configs_of(fields: Mapping[str, str]) -> dict[str, str | None]:
    """By name; None removes a config."""
    return {name: value or None for name, value in checks.pairs(fields["configs"]).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure(Operation):
    """Configs of one topic or broker."""

    KIND: ClassVar[str]
    """What has the configs, in words."""

    configs: Mapping[str, str | None]
    """None removes a config, so that the default applies."""

    @property
    @abstractmethod
    def resource(self) -> ConfigResource:
        """The topic or broker that has the configs."""

    @property
    @abstractmethod
    def source(self) -> int:
        """Kafka's number of where this operation sets them (``ConfigEntry.source``)."""

    @property
    @abstractmethod
    def named(self) -> str:
        """Its name in words."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the operator to consider."""
        return ()

    @property
    def what(self) -> str:
        """For the journal."""
        return f"configure {self.named}"

    async def complete(self, admin: KafkaAdmin) -> str:
        """Name of the topic or broker whose configs Kafka lists in full."""
        return self.resource.name

    async def known(self, admin: KafkaAdmin) -> Mapping[str, ConfigEntry]:
        """Every config that there is, by name."""
        return {entry.name: entry for entry in await admin.describe_configs(self.resource)}

    async def preview(self, context: OperationContext) -> Effect["Configure"]:
        """Each config now and then; those that have the value already are left out.

        :raises InvalidInputError: no such config, not to be changed, or not of its type; nothing
            is sent then.
        :raises RefusedError: a value that the cluster does not take.
        """
        found = await self.known(context.admin)
        for name, value in self.configs.items():
            if name not in found:
                all_of = await self.complete(context.admin)
                raise InvalidInputError(
                    {"configs": no_config_words(self.KIND, name, found, all_of)}
                )
            problem = self._problem(name, value, found)
            if problem:
                raise InvalidInputError({"configs": problem})
        await context.admin.alter_configs(self.resource, self.configs, validate_only=True)
        now = {name: found[name] for name in self.configs}
        return Effect(
            command=self,
            changes=tuple(
                _change(entry, then)
                for name, entry in now.items()
                if not self._has_already(entry, then := self.configs[name])
            ),
            notes=self.notes,
            facts=tuple((name, entry.value) for name, entry in now.items()),
        )

    async def perform(self, context: OperationContext) -> Done:
        """Change them all in one request."""
        await context.admin.alter_configs(self.resource, self.configs)
        words = f"{self.named} is configured: {', '.join(self.configs)}"
        view, name = f"{self.KIND}_configs", self.resource.name
        return Done(words=words, view=view if name else "", params={self.KIND: name})

    def _has_already(self, entry: ConfigEntry, then: str | None) -> bool:
        """A value equal to the default is still set: it then stays when the default changes."""
        is_set = entry.source == self.source
        return not is_set if then is None else is_set and entry.value == then

    def _problem(self, name: str, value: str | None, known: Mapping[str, ConfigEntry]) -> str:
        entry = known[name]
        if entry.is_read_only:
            return f"{name} cannot change while a broker runs: set it in its file, and restart it"
        if value is None or entry.type not in [*ConfigType]:
            return ""
        type_ = ConfigType(entry.type)
        problem = problem_of_type(type_, value)
        return f"{name}={value} is not of type {type_.name.lower()}" if problem else ""


def no_config_words(kind: str, name: str, known: Iterable[str], complete: str) -> str:
    """The problem of a config that a topic or broker does not have, with the nearest ones;
    of the ``complete`` topic or broker all are listed."""
    near = names_meant(name, known)
    lists = f"`partiscope configs describe {kind}:{complete}` lists all"
    return " ".join(filter(None, (f"a {kind} has no config {name};", near, lists)))


def _change(entry: ConfigEntry, then: str | None) -> Change:
    if entry.is_sensitive:
        return Change(entry.name, HIDDEN, REMOVED if then is None else HIDDEN)
    if then is None or entry.value is None:
        return Change(entry.name, entry.value, REMOVED if then is None else then)
    now, words = value_words(entry.name, entry.value), value_words(entry.name, then)
    if now == words:
        words = f"{now} already; set, it stays when the default changes"
    else:
        words = f"{now} → {words}"
    return Change(entry.name, entry.value, then, f"{entry.name}: {words}")
