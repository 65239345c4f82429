"""Set and remove configs of a topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from control.kafka.acl import AclOperation, Lacking
from control.kafka.ports import ConfigResource, ConfigScope
from control.operations.catalogue.configs import CONFIGS, Configure, configs_of
from control.operations.catalogue.fields import REASON, TOPIC
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.protected_topics import check_configs, doubts


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigureTopic(Configure):
    """Configs that are not named stay as they are."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="configure_topic",
        key="C",
        title="Configure a topic",
        help="set configs; an empty value removes one",
        submit_label="Change",
        confirmation=Confirmation.PREVIEW,
        fields=(TOPIC, CONFIGS, REASON),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.ALTER_CONFIGS, "topic"),)
    KIND: ClassVar[str] = "topic"

    topic: str

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(topic=fields["topic"], configs=configs_of(fields), reason=fields["reason"])

    @property
    def resource(self) -> ConfigResource:
        """The topic."""
        return ConfigResource(scope=ConfigScope.TOPIC, name=self.topic)

    @property
    def source(self) -> int:
        """The topic itself."""
        return 1

    @property
    def named(self) -> str:
        """The topic."""
        return self.topic

    def check(self) -> None:
        """:raises ProtectedTopicError: its owner would lose what it keeps there."""
        check_configs(self.topic, self.configs)

    @property
    def notes(self) -> tuple[str, ...]:
        """That it belongs to somebody."""
        return doubts(self.topic)
