"""End a silence: alerts that it held back and that still fire are told at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from control.alerts.silences import Silence
from control.kafka.acl import Lacking
from control.model.moments import iso_text
from control.operations.bus.alert_records import AlertRecords, AlertsTopic
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, FormField, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import InvalidInputError

NAMED_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSilence(Operation):
    """Takes a silence off the bus; a window of the settings ends there, not here."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="end_silence",
        key="L",
        title="End a silence",
        help="what it holds back is told again",
        submit_label="End",
        confirmation=Confirmation.PREVIEW,
        fields=(
            FormField(
                name="silence", label="Silence", is_required=True,
                help="its id, such as si-3f9a21c4; g a lists them",
            ),
            REASON,
        ),
    )  # fmt: skip
    RIGHTS: ClassVar[Lacking] = ()
    """It changes nothing on the watched cluster."""

    silence: str

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(silence=fields["silence"], reason=fields["reason"])

    @property
    def what(self) -> str:
        """For the journal."""
        return f"end {self.silence}"

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """The silence that ends, and the firing alerts that it holds back now.

        :raises InvalidInputError: there is no such silence.
        :raises KafkaPortError: the bus does not answer.
        """
        records = await AlertsTopic(context.moves.bus).read()
        known = _known(records, self.silence)
        until = iso_text(known.until_ms)
        held = [it for it in records.alerts.values() if it.is_open and known.matcher.fits(it)]
        words = f"{self.silence}: {known.matcher.words}, until {until}, ends now"
        lines = [
            Change(it.subject, "silenced", str(it.status), f"{it.rule}, {it.subject}: {it.status}")
            for it in held
        ]
        notes = () if held else ("no open alert is held back by it now",)
        return Effect(
            command=self, changes=(Change("silence", until, None, words), *lines), notes=notes
        )

    async def perform(self, context: OperationContext) -> Done:
        """Take it off.

        :raises InvalidInputError: it has ended meanwhile.
        :raises KafkaPortError: the bus does not answer.
        """
        topic = AlertsTopic(context.moves.bus)
        _known(await topic.read(), self.silence)
        await topic.drop_silence(self.silence)
        return Done(words=f"{self.silence} has ended", view="alerts")


def _known(records: AlertRecords, silence: str) -> Silence:
    found = records.silences.get(silence)
    if found is None:
        names = ", ".join([*records.silences][:NAMED_MAX]) or "none"
        raise InvalidInputError({"silence": f"there is no such silence; there are {names}"})
    return found
