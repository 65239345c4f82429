"""Doing what a form of the registry says, once it is confirmed; the same for both screens.

Reassigning and producing take time and have screens of their own; all other forms are here.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from control.model.fleet import WatchedCluster
from control.model.units import counted
from control.operations.errors import NotElectedError
from control.operations.forms import Confirmation, OperationForm
from control.operations.operator import Operator

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of a form, and the view that shows it (empty: none)."""

    words: str
    path: str = ""


async def perform(operator: Operator, form: str, values: Values, *, typed: str = "") -> Done:
    """Do it; ``typed`` is the word that the operator typed to confirm it.

    :raises OperationError: it may not be done, or was done only in part.
    :raises KafkaPortError: the cluster refuses or does not answer.
    :raises KeyError: no such form, or one with a screen of its own.
    """
    return await _PERFORMERS[form](operator, values, typed)


def word_to_type(watched: WatchedCluster, form: OperationForm, values: Values) -> str:
    """What must be typed before the form is done: the cluster's name where it is production, the
    name of what the form destroys; empty: nothing."""
    is_typed = form.confirmation is Confirmation.TYPED and form.confirm_field is not None
    return watched.word_to_type(values[str(form.confirm_field)].strip() if is_typed else "")


async def _create_topic(operator: Operator, values: Values, typed: str) -> Done:
    await operator.create_topic(values, typed=typed)
    topic = values["topic"]
    return Done(words=f"{topic} is created and led", path=f"topics/{topic}")


async def _add_partitions(operator: Operator, values: Values, typed: str) -> Done:
    await operator.add_partitions(values, typed=typed)
    topic = values["topic"]
    return Done(words=f"{topic} has {values['partitions']} partitions", path=f"topics/{topic}")


async def _configure_topic(operator: Operator, values: Values, typed: str) -> Done:
    await operator.configure_topic(values, typed=typed)
    return Done(words=f"{values['topic']} is configured")


async def _delete_topic(operator: Operator, values: Values, typed: str) -> Done:
    await operator.delete_topic(values, typed=typed)
    return Done(words=f"{values['topic']} is deleted", path="topics")


async def _elect(operator: Operator, values: Values, typed: str) -> Done:
    elected, refused = await operator.elect(values, typed=typed)
    if refused:
        raise NotElectedError(refused)
    return Done(words=f"{counted(elected, 'leader')} elected")


async def _reset_offsets(operator: Operator, values: Values, typed: str) -> Done:
    resets = await operator.reset_offsets(values, typed=typed)
    words = f"{values['group']} is reset on {counted(len(resets), 'partition')}"
    return Done(words=words, path=f"groups/{values['group']}")


_PERFORMERS: Final[Mapping[str, Callable[[Operator, Values, str], Awaitable[Done]]]] = {
    "create_topic": _create_topic,
    "add_partitions": _add_partitions,
    "configure_topic": _configure_topic,
    "delete_topic": _delete_topic,
    "elect": _elect,
    "reset_offsets": _reset_offsets,
}
PERFORMED: Final = frozenset(_PERFORMERS)
"""Names of the forms that ``perform`` does."""
