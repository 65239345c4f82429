"""Set and remove configs of one broker, or of all of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

from broker.protocol.known_configs import ConfigType
from control.kafka.acl import AclOperation, Lacking
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope
from control.move.throttle import RATES
from control.operations.catalogue.configs import CONFIGS, Configure, configs_of
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm
from control.operations.errors import InvalidInputError

ALL: Final = "all"
DEFAULT: Final = 5
UNLISTED: Final = tuple(
    ConfigEntry(
        name=name,
        value=None,
        is_default=True,
        is_read_only=False,
        is_sensitive=False,
        source=DEFAULT,
        type=ConfigType.LONG,
    )
    for name in (*RATES, "replica.alter.log.dirs.io.max.bytes.per.second")
)
"""Kafka takes them and lists them only while they are set (its class ``QuotaConfig``)."""
OF_LISTENER: Final = "listener.name."


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

    async def complete(self, admin: KafkaAdmin) -> str:
        """Itself; of all brokers Kafka lists only what is set, so it is one that lives."""
        brokers = (await admin.describe_cluster()).brokers
        return str(brokers[0].id) if self.broker == ALL else self.broker

    async def known(self, admin: KafkaAdmin) -> Mapping[str, ConfigEntry]:
        """Every config by name, also those that Kafka lists only while they are set. For all
        brokers it lists what is set; a live one adds the rest.

        :raises InvalidInputError: no such broker is alive.
        """
        alive = [broker.id for broker in (await admin.describe_cluster()).brokers]
        if self.broker != ALL and int(self.broker) not in alive:
            others = ", ".join(map(str, alive))
            raise InvalidInputError({"broker": f"no broker {self.broker} is alive; {others} are"})
        set_here = {it.name: it for it in await admin.describe_configs(self.resource)}
        known = set_here
        if self.broker == ALL:
            one = ConfigResource(scope=ConfigScope.BROKER, name=str(alive[0]))
            of_one = await admin.describe_configs(one)
            unset = {it.name: _unset(it, it.name) for it in of_one}
            known = unset | set_here
        return {**known, **_unlisted(self.configs, known)}


def _unset(entry: ConfigEntry, name: str) -> ConfigEntry:
    """The config of this name, which is of the entry's kind."""
    return replace(
        entry, name=name, value=None, is_default=True, source=DEFAULT, documentation="", synonyms=()
    )


def _unlisted(names: Iterable[str], known: Mapping[str, ConfigEntry]) -> dict[str, ConfigEntry]:
    """Configs that Kafka takes and lists only while they are set, and then as if they could not
    change: rates of throttles, and those of the names that are one listener's
    (``listener.name.outside.ssl.keystore.location``)."""
    kinds = {it.name: it for it in UNLISTED}
    for name in names:
        of_any = [it for it in known if name.startswith(OF_LISTENER) and name.endswith(f".{it}")]
        if of_any:
            kinds[name] = _unset(known[max(of_any, key=len)], name)
    return {
        name: replace(known.get(name, kind), is_read_only=False, type=kind.type)
        for name, kind in kinds.items()
    }
