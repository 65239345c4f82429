"""The catalogue of operations: one list that feeds keys, help, buttons, forms, confirmations and
commands of all faces."""

from collections.abc import Mapping
from typing import Final

from control.kafka.acl import AclOperation, Lacking
from control.operations.catalogue.alerts.end_silence import EndSilence
from control.operations.catalogue.alerts.silence_alerts import SilenceAlerts
from control.operations.catalogue.brokers.clear_throttles import ClearThrottles
from control.operations.catalogue.brokers.configure_broker import ConfigureBroker
from control.operations.catalogue.brokers.cordon import Cordon
from control.operations.catalogue.brokers.drain import Drain
from control.operations.catalogue.brokers.teach_acks import TeachAcks
from control.operations.catalogue.brokers.uncordon import Uncordon
from control.operations.catalogue.forms import FieldKind, OperationForm
from control.operations.catalogue.groups.delete_group import DeleteGroup
from control.operations.catalogue.groups.delete_offsets import DeleteOffsets
from control.operations.catalogue.groups.reset_offsets import ResetOffsets
from control.operations.catalogue.moves.cancel import Cancel
from control.operations.catalogue.moves.cancel_after_wave import CancelAfterWave
from control.operations.catalogue.moves.change_throttle import ChangeThrottle
from control.operations.catalogue.moves.control import MoveOperation
from control.operations.catalogue.moves.pause import Pause
from control.operations.catalogue.moves.reassign import Reassign
from control.operations.catalogue.moves.resume import Resume
from control.operations.catalogue.moves.roll_back import RollBack
from control.operations.catalogue.operation import Operation
from control.operations.catalogue.topics.add_partitions import AddPartitions
from control.operations.catalogue.topics.configure_topic import ConfigureTopic
from control.operations.catalogue.topics.create_topic import CreateTopic
from control.operations.catalogue.topics.delete_records import DeleteRecords
from control.operations.catalogue.topics.delete_topic import DeleteTopic
from control.operations.catalogue.topics.elect_leaders import ElectLeaders
from control.operations.catalogue.topics.produce import Produce

OPERATIONS: Final[tuple[type[Operation], ...]] = (
    Reassign,
    Produce,
    CreateTopic,
    AddPartitions,
    ConfigureTopic,
    ConfigureBroker,
    Cordon,
    Uncordon,
    Drain,
    ClearThrottles,
    TeachAcks,
    DeleteTopic,
    DeleteRecords,
    ElectLeaders,
    ResetOffsets,
    DeleteOffsets,
    DeleteGroup,
    SilenceAlerts,
    EndSilence,
)
"""Those that are offered everywhere."""
MOVE_OPERATIONS: Final[tuple[type[MoveOperation], ...]] = (
    Pause,
    Resume,
    Cancel,
    CancelAfterWave,
    RollBack,
    ChangeThrottle,
)
"""Those that the view of a reassignment offers."""
FORMS: Final[tuple[OperationForm, ...]] = tuple(operation.FORM for operation in OPERATIONS)
RIGHTS: Final[Mapping[str, Lacking]] = {it.FORM.name: it.RIGHTS for it in OPERATIONS}
"""By operation that changes something; those on a reassignment need the rights of ``reassign``."""
NEEDED_OF: Final = {it.FORM.name: it.FORM.right for it in MOVE_OPERATIONS}
"""By operation on a reassignment, the one whose rights on the cluster it needs."""
NEEDED_RIGHTS: Final = {
    **{name: rights for name, rights in RIGHTS.items() if rights},
    "browse": ((AclOperation.READ, "topic"),),
}
"""By operation that a screen offers, and that needs any on the watched cluster."""
_MOVE_OPERATIONS: Final = {it.FORM.name: it for it in MOVE_OPERATIONS}
_BY_NAME: Final = {it.FORM.name: it for it in (*OPERATIONS, *MOVE_OPERATIONS)}


def form_named(name: str) -> OperationForm:
    """The form of any operation.

    :raises KeyError: there is none.
    """
    return _BY_NAME[name].FORM


def forms_about(kind: FieldKind) -> tuple[OperationForm, ...]:
    """Dialogs about one topic, group or broker: their first field names it."""
    return tuple(it for it in FORMS if not it.view and it.fields[0].kind is kind)


def operation_named(name: str) -> type[Operation]:
    """Any operation.

    :raises KeyError: there is none.
    """
    return _BY_NAME[name]


def move_operation(name: str) -> type[MoveOperation]:
    """An operation on one reassignment.

    :raises KeyError: there is none.
    """
    return _MOVE_OPERATIONS[name]
