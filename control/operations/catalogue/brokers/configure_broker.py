"""Set and remove configs of one broker, or of all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.collector.rights import AclOperation, Lacking
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope
from control.operations.catalogue.configs import CONFIGS, Configure, configs_of
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm
from control.operations.errors import InvalidInputError

ALL: Final = "all"
DEFAULT: Final = 5


def _broker(text: str) -> str | None:
    return None if text == ALL or text.isdecimal() else f"a broker's id such as 101, or {ALL}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigureBroker(Configure):
    """Configs that are not named stay as they are. Each can be changed while brokers run."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="configure_broker",
        key="B",
        title="Configure a broker",
        help="set configs while it runs; an empty value removes one",
        submit_label="Change",
        confirmation=Confirmation.PREVIEW,
        fields=(
            FormField(
                name="broker",
                label="Broker",
                kind=FieldKind.BROKER,
                help=f"its id, or {ALL}",
                is_required=True,
                check=_broker,
            ),
            CONFIGS,
            REASON,
        ),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.ALTER_CONFIGS, "cluster"),)
    KIND: ClassVar[str] = "broker"

    broker: str
    """Its id, or ``all``."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(broker=fields["broker"], configs=configs_of(fields), reason=fields["reason"])

    @property
    def resource(self) -> ConfigResource:
        """The broker; Kafka names all brokers by an empty name."""
        name = "" if self.broker == ALL else self.broker
        return ConfigResource(scope=ConfigScope.BROKER, name=name)

    @property
    def source(self) -> int:
        """The broker itself, or what is set for all brokers."""
        return 3 if self.broker == ALL else 2

    @property
    def named(self) -> str:
        """The broker, or every one."""
        return "every broker" if self.broker == ALL else f"broker {self.broker}"

    @property
    def lister(self) -> str:
        """Its configs on the command line."""
        return "broker:ID" if self.broker == ALL else f"broker:{self.broker}"

    async def known(self, admin: KafkaAdmin) -> Mapping[str, ConfigEntry]:
        """Every config by name. For all brokers Kafka lists what is set; a live one adds the rest.

        :raises InvalidInputError: no such broker is alive.
        """
        alive = [broker.id for broker in (await admin.describe_cluster()).brokers]
        if self.broker != ALL and int(self.broker) not in alive:
            known = ", ".join(map(str, alive))
            raise InvalidInputError({"broker": f"no broker {self.broker} is alive; {known} are"})
        if self.broker != ALL:
            return {it.name: it for it in await admin.describe_configs(self.resource)}
        one = ConfigResource(scope=ConfigScope.BROKER, name=str(alive[0]))
        shared = {it.name: it for it in await admin.describe_configs(self.resource)}
        return {
            it.name: shared.get(it.name) or _unset(it) for it in await admin.describe_configs(one)
        }


def _unset(entry: ConfigEntry) -> ConfigEntry:
    return ConfigEntry(
        name=entry.name,
        value=None,
        is_default=True,
        is_read_only=entry.is_read_only,
        is_sensitive=entry.is_sensitive,
        source=DEFAULT,
        type=entry.type,
    )
