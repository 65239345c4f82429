"""Configs of groups and of client metrics subscriptions: checked as Kafka 4.1 does, and kept."""

import pytest

from broker.controller.config_control import (
    AlterOperation,
    AlterResource,
    ConfigChange,
    decide_alter_configs,
)
from broker.controller.decision import Accepted, Rejected
from broker.controller.errors import ControllerError, InvalidConfigError, InvalidConfigRequestError
from broker.metadata.image import ConfigResource, ResourceType
from tests.unit.broker.controller.images import cluster, decided, never

GROUP = ResourceType.GROUP
METRICS = ResourceType.CLIENT_METRICS


def alter(
    type_: ResourceType, name: str, *, replaces_all: bool = False, **values: str
) -> AlterResource:
    changes = [
        ConfigChange(name=key.replace("_", "."), operation=AlterOperation.SET, value=value)
        for key, value in values.items()
    ]
    resource = ConfigResource(type=type_, name=name)
    return AlterResource(resource=resource, changes=changes, replaces_all=replaces_all)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (alter(GROUP, "g", consumer_session_timeout_ms="46000"), None),
        (alter(GROUP, "g", consumer_session_timeout_ms="46000", replaces_all=True), None),
        (alter(GROUP, "g", consumer_session_timeout_ms="1"), InvalidConfigError),
        (alter(GROUP, "g", consumer_session_timeout_ms="60001"), InvalidConfigError),
        (alter(GROUP, "g", consumer_session_timeout_ms="x"), InvalidConfigError),
        (alter(GROUP, "g", share_auto_offset_reset="earliest"), None),
        (alter(GROUP, "g", share_auto_offset_reset="by_duration:PT1H"), None),
        (alter(GROUP, "g", share_auto_offset_reset="by_duration:1H"), InvalidConfigError),
        (alter(GROUP, "g", share_auto_offset_reset="never"), InvalidConfigError),
        (alter(GROUP, "g", retention_ms="1"), InvalidConfigError),
        (alter(GROUP, "", consumer_session_timeout_ms="46000"), InvalidConfigRequestError),
        (alter(METRICS, "s", interval_ms="60000", match="client_id=a.*"), None),
        (alter(METRICS, "s", metrics="*"), None),
        (alter(METRICS, "s", interval_ms="99"), InvalidConfigRequestError),
        (alter(METRICS, "s", interval_ms="x"), InvalidConfigError),
        (alter(METRICS, "s", match="colour=red"), InvalidConfigError),
        (alter(METRICS, "s", match="client_id=("), InvalidConfigError),
        (alter(METRICS, "s", retention_ms="1"), InvalidConfigRequestError),
        (alter(METRICS, "", interval_ms="60000"), InvalidConfigRequestError),
    ],
)
def test_values_of_resources_by_name(
    asked: AlterResource, error: type[ControllerError] | None
) -> None:
    decision = decide_alter_configs([asked], cluster(), is_unclean_enabled=never)
    verdict = decision.response[asked.resource]
    if error is None:
        assert isinstance(verdict, Accepted)
        assert set(decided(cluster(), decision).config(asked.resource)) == {
            change.name for change in asked.changes
        }
    else:
        assert isinstance(verdict, Rejected)
        assert type(verdict.error) is error
        assert decision.records == ()
