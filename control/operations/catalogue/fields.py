"""Fields that several operations share."""

from typing import Final

from control.operations import checks
from control.operations.catalogue.forms import FieldKind, FormField

TOPIC: Final = FormField(
    name="topic", label="Topic", kind=FieldKind.TOPIC, is_required=True, check=checks.topic_name
)
BROKER: Final = FormField(
    name="broker", label="Broker", kind=FieldKind.BROKER, is_required=True, check=checks.broker_id
)
GROUP: Final = FormField(name="group", label="Group", kind=FieldKind.GROUP, is_required=True)
REASON: Final = FormField(name="reason", label="Reason", help="for the journal")
