"""The catalogue of operations: one list that feeds keys, help, buttons, forms, confirmations and
commands of all faces."""

from collections.abc import Mapping
from typing import Final

from control.kafka.collector.rights import AclOperation, Lacking
from control.kafka.reassignments import REASSIGN_RIGHTS
from control.operations.catalogue import reassign
from control.operations.catalogue.add_partitions import AddPartitions
from control.operations.catalogue.configure_broker import ConfigureBroker
from control.operations.catalogue.configure_topic import ConfigureTopic
from control.operations.catalogue.create_topic import CreateTopic
from control.operations.catalogue.delete_group import DeleteGroup
from control.operations.catalogue.delete_offsets import DeleteOffsets
from control.operations.catalogue.delete_records import DeleteRecords
from control.operations.catalogue.delete_topic import DeleteTopic
from control.operations.catalogue.elect_leaders import ElectLeaders
from control.operations.catalogue.forms import FieldKind, OperationForm
from control.operations.catalogue.operation import Operation
from control.operations.catalogue.produce import Produce
from control.operations.catalogue.reset_offsets import ResetOffsets

OPERATIONS: Final[tuple[type[Operation], ...]] = (
    Produce,
    CreateTopic,
    AddPartitions,
    ConfigureTopic,
    ConfigureBroker,
    DeleteTopic,
    DeleteRecords,
    ElectLeaders,
    ResetOffsets,
    DeleteOffsets,
    DeleteGroup,
)
"""All but reassigning, which the executor does."""
FORMS: Final[tuple[OperationForm, ...]] = (
    reassign.REASSIGN,
    *(operation.FORM for operation in OPERATIONS),
)
RIGHTS: Final[Mapping[str, Lacking]] = {
    reassign.REASSIGN.name: REASSIGN_RIGHTS,
    **{operation.FORM.name: operation.RIGHTS for operation in OPERATIONS},
}
"""By operation that changes something."""
NEEDED_RIGHTS: Final = {**RIGHTS, "browse": ((AclOperation.READ, "topic"),)}
"""By operation that a screen offers."""
_BY_NAME: Final = {operation.FORM.name: operation for operation in OPERATIONS}
_FORM_BY_NAME: Final = {form.name: form for form in FORMS}


def form_named(name: str) -> OperationForm:
    """The form of any operation.

    :raises KeyError: there is none.
    """
    return _FORM_BY_NAME[name]


def forms_about(kind: FieldKind) -> tuple[OperationForm, ...]:
    """Dialogs about one topic or one group: their first field names it."""
    return tuple(it for it in FORMS if not it.view and it.fields[0].kind is kind)


def operation_named(name: str) -> type[Operation]:
    """An operation that is no reassignment.

    :raises KeyError: there is none.
    """
    return _BY_NAME[name]
