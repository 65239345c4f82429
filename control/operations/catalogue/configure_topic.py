"""Set and remove configs of a topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from shlex import quote
from typing import ClassVar, Final, Self

from control.kafka.admin import KafkaAdmin
from control.kafka.collector.rights import AclOperation, Lacking
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope
from control.operations import checks
from control.operations.catalogue.fields import REASON, TOPIC
from control.operations.catalogue.forms import Confirmation, FormField, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation
from control.operations.errors import InvalidInputError
from control.operations.protected_topics import check_configs, doubts

REMOVED: Final = "the default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigureTopic(Operation):
    """Configs that are not named stay as they are."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="configure_topic",
        key="C",
        title="Configure a topic",
        help="set configs; an empty value removes one",
        submit_label="Change",
        confirmation=Confirmation.PREVIEW,
        fields=(
            TOPIC,
            FormField(
                name="configs",
                label="Configs",
                help="name=value, …",
                is_required=True,
                check=checks.config_pairs,
            ),
            REASON,
        ),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.ALTER_CONFIGS, "topic"),)

    topic: str
    configs: Mapping[str, str | None]
    """None removes a config, so that the broker's default applies."""
    reason: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        configs = {name: value or None for name, value in checks.pairs(fields["configs"]).items()}
        return cls(topic=fields["topic"], configs=configs, reason=fields["reason"])

    @property
    def what(self) -> str:
        """For the journal."""
        return f"configure {self.topic}"

    def check(self) -> None:
        """:raises ProtectedTopicError: its owner would lose what it keeps there."""
        check_configs(self.topic, self.configs)

    async def preview(self, admin: KafkaAdmin) -> Effect[Self]:
        """Each config now and then; those that have the value already are left out.

        :raises InvalidInputError: a topic has no such config.
        :raises RefusedError: a value that the cluster does not take.
        """
        found = {entry.name: entry for entry in await admin.describe_configs(self._resource())}
        unknown = [name for name in self.configs if name not in found]
        if unknown:
            raise InvalidInputError({"configs": self._unknown_words(unknown[0], found)})
        await admin.alter_configs(self._resource(), self.configs, validate_only=True)
        now = {name: found[name] for name in self.configs}
        return Effect(
            command=self,
            changes=tuple(
                Change(name, entry.value, REMOVED if self.configs[name] is None else then)
                for name, entry in now.items()
                if not _has_already(entry, then := self.configs[name])
            ),
            notes=doubts(self.topic),
            facts=tuple((name, entry.value) for name, entry in now.items()),
        )

    async def perform(self, admin: KafkaAdmin) -> Done:
        """Change them all in one request."""
        await admin.alter_configs(self._resource(), self.configs)
        words = f"{self.topic} is configured: {', '.join(self.configs)}"
        return Done(words=words, view="topic", params={"topic": self.topic})

    def _unknown_words(self, name: str, known: Mapping[str, object]) -> str:
        near = get_close_matches(name, known, n=1)
        lists = f"`partiscope configs describe {quote(self.topic)}` lists them"
        return f"a topic has no config {name}; {f'did you mean {near[0]}?' if near else lists}"

    def _resource(self) -> ConfigResource:
        return ConfigResource(scope=ConfigScope.TOPIC, name=self.topic)


def _has_already(entry: ConfigEntry, then: str | None) -> bool:
    """A value equal to the default is still set: it then stays when the default changes."""
    return entry.is_default if then is None else not entry.is_default and entry.value == then
