"""The lesson of acks: kill a broker of the bundled cluster while records are sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Self

from control.kafka.acl import AclOperation, Lacking
from control.messages.acks_lesson import AcksResult, LessonError, place_lesson, teach_acks
from control.operations import checks
from control.operations.broker_stop_client import OUTAGE_S_MAX, OutageRefusedError, outage
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import InvalidInputError

NOT_HERE: Final = (
    "only the brokers that `partiscope up` or `partiscope cluster` runs here are stopped to learn"
)
_STOPPED_S: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TeachAcks(Operation):
    """Sends with acks 0, 1 and all while a broker is stopped, and tells what survived."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="teach_acks",
        key="A",
        title="Lesson of acks",
        help="kill a broker while records are sent with acks 0, 1 and all: what survives?",
        submit_label="Begin",
        confirmation=Confirmation.PREVIEW,
        fields=(
            FormField(
                name="broker", label="Broker to stop", kind=FieldKind.BROKER, is_required=True
            ),
            FormField(
                name="stopped_s",
                label="Stopped for",
                kind=FieldKind.NUMBER,
                default=str(_STOPPED_S),
                help="seconds",
                check=checks.whole(1, int(OUTAGE_S_MAX) - 10),
            ),
            REASON,
        ),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.CREATE, "cluster"),)

    broker: int
    stopped_s: int = _STOPPED_S
    results: list[AcksResult] = field(default_factory=list, compare=False)
    """Once it is done."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        broker, stopped_s = int(fields["broker"]), int(fields["stopped_s"])
        return cls(broker=broker, stopped_s=stopped_s, reason=fields["reason"])

    @property
    def what(self) -> str:
        """For the journal."""
        return f"stop broker {self.broker} for the lesson of acks"

    @property
    def outcome(self) -> Mapping[str, int]:
        """Acknowledged records that were lost, by acks."""
        return {f"lost_acks_{it.acks}": it.lost for it in self.results}

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """The broker that is stopped, and the others, which go on.

        :raises InvalidInputError: not this cluster, or not this broker.
        """
        if not context.outages:
            raise InvalidInputError({"broker": NOT_HERE})
        try:
            _, *others = await place_lesson(context.admin, self.broker)
        except LessonError as error:
            raise InvalidInputError({"broker": str(error)}) from error
        words = f"broker {self.broker} is killed, and started again after {self.stopped_s} s"
        return Effect(
            command=replace(self, results=[]),
            changes=(Change(f"broker {self.broker}", "runs", "stopped", words),),
            notes=(
                "the other brokers stand still for half a second before, so that they lag behind",
                f"brokers {' and '.join(map(str, others))} go on; a topic of its own is created, "
                "and deleted again",
                "the supervisor starts the broker again even if this screen is killed",
            ),
        )

    async def perform(self, context: OperationContext) -> Done:
        """Teach, which takes about half a minute; tell what was acknowledged and what survived."""
        stopping = partial(outage, Path(context.outages), self.broker)
        settings = context.admin.wire.settings
        try:
            results = await teach_acks(settings, self.broker, stopping, stopped_s=self.stopped_s)
        except (LessonError, OutageRefusedError, TimeoutError) as error:
            raise InvalidInputError({"broker": str(error) or "it is not in sync again"}) from error
        self.results.extend(results)
        told = f"broker {self.broker} was killed, and is back"
        return Done(words=told, lines=tuple(it.words for it in results))
