"""One operation on several topics or groups, by one preview and one confirmation.

Each row is judged by itself: one that cannot be done is named and left out, and one that fails
leaves the others as they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import ClassVar, Final, Self

from control.kafka.acl import Lacking
from control.kafka.errors import KafkaPortError, UnreachableError
from control.model.units import counted
from control.operations.catalogue import operation_named
from control.operations.catalogue.forms import FieldKind, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import InvalidInputError, NothingDoneError, OperationError

ROWS_MAX: Final = 500
"""More rows are refused: each is asked for and changed by itself."""
NAMED_MAX: Final = 3
"""So many rows or changes are named in one line; the rest is counted."""
NOT_DONE: Final = "✖"
"""The result of a row that was not done begins with it."""
Problem = OperationError | KafkaPortError


@dataclass(frozen=True, slots=True, kw_only=True)
class Several(Operation):
    """The same operation for each row; ``several_of`` makes it of a form."""

    RIGHTS: ClassVar[Lacking] = ()

    parts: Mapping[str, Operation]
    """By row. Of the frozen command: those that will be done."""
    effects: Mapping[str, Effect[Operation]] = field(default_factory=dict)
    """Of the frozen command, by row."""
    results: dict[str, str | int | None] = field(default_factory=dict)
    """What came of each row so far."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """:raises TypeError: rows are no field of a form; ``several_of`` takes them."""
        raise TypeError("several_of makes it")

    @property
    def form(self) -> OperationForm:
        """That of its rows."""
        return next(iter(self.parts.values())).form

    @property
    def what(self) -> str:
        """For the journal; its changes name every row."""
        return _named([part.what for part in self.parts.values()])

    @property
    def thing(self) -> str:
        """How many are destroyed: ``3 topics``; of one its name."""
        things = [part.thing for part in self.parts.values() if part.thing]
        return counted(len(things), self.noun) if len(things) > 1 else "".join(things)

    @property
    def noun(self) -> str:
        """The kind of row: topic, group."""
        return self.form.fields[0].name

    @property
    def outcome(self) -> Mapping[str, str | int | None]:
        """Outcome of each row."""
        return self.results

    @property
    def shortfall(self) -> str:
        """Which rows were not done: ``2 of 3 topics done, not b``."""
        failed = [row for row, words in self.results.items() if str(words).startswith(NOT_DONE)]
        return f"{self._done_words}, not {_named(failed, ', ')}" if failed else ""

    @property
    def _done_words(self) -> str:
        done = sum(not str(words).startswith(NOT_DONE) for words in self.results.values())
        return f"{done} of {counted(len(self.effects), self.noun)} done"

    @property
    def size(self) -> int:
        """Changes of all rows."""
        return sum(effect.size for effect in self.effects.values())

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """A line for each row: what it costs, or why it is left out.

        :raises OperationError: no row can be done; the first row's reason.
        """
        effects: dict[str, Effect[Operation]] = {}
        idle: list[str] = []
        problems: dict[str, Problem] = {}
        for row, part in self.parts.items():
            try:
                part.check()
                effect = await part.preview(context)
                if effect.refusal is not None:
                    raise effect.refusal
            except UnreachableError:
                raise
            except (OperationError, KafkaPortError) as error:
                problems[row] = error
                continue
            if effect.changes:
                effects[row] = effect
            else:
                idle.append(row)
        if len(problems) == len(self.parts):
            raise next(iter(problems.values()))
        left = [f"✖ {row} is left out: {_reason(error)}" for row, error in problems.items()]
        same = [f"{row}: nothing to change" for row in idle]
        notes = dict.fromkeys(note for effect in effects.values() for note in effect.notes)
        kept = {row: effect.command for row, effect in effects.items()} or self.parts
        return Effect(
            command=replace(self, parts=kept, effects=effects, results={}),
            changes=tuple(_change(row, effect) for row, effect in effects.items()),
            notes=(*left, *same, *notes),
        )

    async def perform(self, context: OperationContext) -> Done:
        """Row by row; once nobody answers, the rest is not tried.

        :raises NothingDoneError: no row was done.
        """
        gone = ""
        for row, effect in self.effects.items():
            if gone:
                self.results[row] = f"{NOT_DONE} not tried: {gone}"
                continue
            try:
                effect.command.check()
                await effect.command.require_fresh(context, effect.facts)
                self.results[row] = (await effect.command.perform(context)).words
            except (OperationError, KafkaPortError) as error:
                self.results[row] = f"{NOT_DONE} not done: {_reason(error)}"
                gone = str(error) if isinstance(error, UnreachableError) else ""
        lines = tuple(f"{row}: {words}" for row, words in self.results.items())
        if all(str(words).startswith(NOT_DONE) for words in self.results.values()):
            raise NothingDoneError(self.what, lines)
        return Done(words=self._done_words, lines=lines, view=f"{self.noun}s")


def takes_several(form: OperationForm) -> bool:
    """Whether the operation may be done to several rows at once."""
    return not form.view and form.fields[0].kind in (FieldKind.TOPIC, FieldKind.GROUP)


def several_of(form: OperationForm, rows: Iterable[str], values: Mapping[str, str]) -> Several:
    """The operation of a form for these rows; ``values`` are its other fields.

    :raises InvalidInputError: a wrong field, no row, or too many.
    """
    subject = form.fields[0].name
    names = tuple(dict.fromkeys(rows))
    if not 0 < len(names) <= ROWS_MAX:
        words = f"{len(names):,} rows are marked; mark 1 to {ROWS_MAX}"
        raise InvalidInputError({subject: words})
    operation = operation_named(form.name)
    return Several(
        parts={row: operation.of(form.parse({**values, subject: row})) for row in names},
        reason=values.get("reason", "").strip(),
    )


def rows_words(form: OperationForm, rows: Sequence[str]) -> str:
    """Which rows are marked: ``3 topics: a, b, c``."""
    return f"{counted(len(rows), form.fields[0].name)}: {_named(rows, ', ')}"


def _change(row: str, effect: Effect[Operation]) -> Change:
    words = effect.summary or _named([change.line for change in effect.changes])
    if not words.startswith(row):
        words = f"{row}: {words}"
    first = effect.changes[0] if len(effect.changes) == 1 else Change(row, None, words)
    return Change(row, first.now, first.then, words)


def _named(words: Sequence[str], between: str = "; ") -> str:
    left = len(words) - NAMED_MAX
    more = [f"and {left:,} more"] if left > 0 else []
    return between.join([*islice(words, NAMED_MAX), *more])


def _reason(error: Problem) -> str:
    if isinstance(error, InvalidInputError):
        return "; ".join(error.fields.values())
    return error.reason
