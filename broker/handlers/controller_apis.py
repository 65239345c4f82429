"""Requests that only the active controller executes: the table, and the way there and back.

    @controller_api(19, versions=(2, 7), refuse=_refuse)
    async def execute(active: ActiveController, request: ControllerRequest) -> Any: ...

The client listener hands such a request to `node.controller.submit`; wherever the active controller
is, it executes the function that is registered here for the API key.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from kio.schema.errors import ErrorCode

from broker.controller import errors
from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest, Execute
from broker.controller.decision import Accepted, Decision, Verdict, named_twice
from broker.controller.errors import (
    ControllerError,
    ControllerUnavailableError,
    NotControllerError,
    PolicyViolationError,
)
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation
from broker.metadata.authorization import CLUSTER
from broker.metadata.image import MetadataImage

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

NOT_AUTHORIZED: Final = {
    ErrorCode.topic_authorization_failed: "Topic authorization failed.",
    ErrorCode.group_authorization_failed: "Group authorization failed.",
    ErrorCode.cluster_authorization_failed: "Cluster authorization failed.",
}
"""Kafka's words."""
RECORDS_MAX: Final = 10_000
STEP_ITEMS: Final = 250
CONTROLLER_APIS: Final[dict[int, Execute]] = {}
VERSIONS: Final[dict[int, tuple[int, int]]] = {}
"""Of each of them, inclusive."""
NODE_APIS: Final[set[int]] = set()
"""Those that only nodes may ask."""

# How an answer looks when no controller was found: (version, request message, code, reason).
Refuse = Callable[[int, Any, ErrorCode, str], Any]

ERROR_CODES: Final[dict[type[ControllerError], ErrorCode]] = {
    errors.NotControllerError: ErrorCode.not_controller,
    errors.ControllerUnavailableError: ErrorCode.request_timed_out,
    errors.TopicAuthorizationError: ErrorCode.topic_authorization_failed,
    errors.InvalidTopicError: ErrorCode.invalid_topic_exception,
    errors.TopicExistsError: ErrorCode.topic_already_exists,
    errors.UnknownTopicError: ErrorCode.unknown_topic_or_partition,
    errors.UnknownTopicIdError: ErrorCode.unknown_topic_id,
    errors.InvalidPartitionsError: ErrorCode.invalid_partitions,
    errors.InvalidReplicationFactorError: ErrorCode.invalid_replication_factor,
    errors.InvalidReplicaAssignmentError: ErrorCode.invalid_replica_assignment,
    errors.PolicyViolationError: ErrorCode.policy_violation,
    errors.TopicDeletionDisabledError: ErrorCode.topic_deletion_disabled,
    errors.InvalidConfigError: ErrorCode.invalid_config,
    errors.InvalidConfigRequestError: ErrorCode.invalid_request,
    errors.DuplicateResourceError: ErrorCode.duplicate_resource,
    errors.ResourceNotFoundError: ErrorCode.resource_not_found,
    errors.UnacceptableCredentialError: ErrorCode.unacceptable_credential,
    errors.UnsupportedMechanismError: ErrorCode.unsupported_sasl_mechanism,
    errors.ClusterAuthorizationError: ErrorCode.cluster_authorization_failed,
    errors.GroupAuthorizationError: ErrorCode.group_authorization_failed,
    errors.ThrottlingQuotaExceededError: ErrorCode.throttling_quota_exceeded,
    errors.InvalidRegistrationError: ErrorCode.invalid_registration,
    errors.DuplicateBrokerError: ErrorCode.duplicate_broker_registration,
    errors.StaleBrokerEpochError: ErrorCode.stale_broker_epoch,
    errors.BrokerNotRegisteredError: ErrorCode.broker_id_not_registered,
    errors.InconsistentClusterError: ErrorCode.inconsistent_cluster_id,
    errors.FencedLeaderEpochError: ErrorCode.fenced_leader_epoch,
    errors.NewLeaderElectedError: ErrorCode.new_leader_elected,
    errors.InvalidUpdateVersionError: ErrorCode.invalid_update_version,
    errors.IneligibleReplicaError: ErrorCode.ineligible_replica,
    errors.OperationNotAttemptedError: ErrorCode.operation_not_attempted,
    errors.InvalidIsrError: ErrorCode.invalid_request,
    errors.ElectionNotNeededError: ErrorCode.election_not_needed,
    errors.PreferredLeaderNotAvailableError: ErrorCode.preferred_leader_not_available,
    errors.EligibleLeadersNotAvailableError: ErrorCode.eligible_leaders_not_available,
    errors.NoReassignmentInProgressError: ErrorCode.no_reassignment_in_progress,
}


def error_code(error: ControllerError) -> ErrorCode:
    """Kafka's code of a refusal."""
    return ERROR_CODES.get(type(error), ErrorCode.unknown_server_error)


def verdict_fields(verdict: Verdict[Any]) -> dict[str, Any]:
    """`error_code` and `error_message` of one item."""
    if isinstance(verdict, Accepted):
        return {"error_code": ErrorCode.none, "error_message": None}
    return {"error_code": error_code(verdict.error), "error_message": verdict.error.reason}


async def run_in_steps(
    run: Callable[[Callable[[MetadataImage], Decision[dict[K, V]]]], Awaitable[dict[K, V]]],
    items: Sequence[T],
    key: Callable[[T], Hashable],
    decide: Callable[[Sequence[T], MetadataImage], Decision[dict[K, V]]],
    *,
    records: int | None = None,
) -> dict[K, V]:
    """Verdicts on the items of one request, STEP_ITEMS of them at a time: others go on in between.

    Items of one key stay in one step. Raises PolicyViolationError when the request would make more
    than RECORDS_MAX `records` (one an item, if not told), as Kafka bounds a controller operation.
    """
    if (len(items) if records is None else records) > RECORDS_MAX:
        raise PolicyViolationError("Unable to perform excessively large batch operation.")
    doubled = named_twice(map(key, items))
    ordered = sorted(items, key=lambda item: key(item) not in doubled)
    twice = sum(key(item) in doubled for item in items)
    verdicts: dict[K, V] = {}
    start = 0
    while start < len(ordered):
        end = max(start + STEP_ITEMS, twice)
        step = ordered[start:end]
        verdicts |= await run(partial(decide, step))
        await asyncio.sleep(0)  # a step without records waits for no commit
        start = end
    return verdicts


async def forward(request: Request, node: NodeServices, refuse: Refuse) -> Any:
    """The active controller's answer; `refuse` builds one when there was none in time."""
    message, version = request.message, request.api_version
    try:
        return await node.controller.submit(
            request.api_key, version, message, context=request.context
        )
    except ControllerUnavailableError as error:
        return refuse(version, message, ErrorCode.request_timed_out, error.reason)


Send = Callable[[Request, NodeServices, Refuse], Awaitable[Any]]


def _add(
    api_key: int,
    versions: tuple[int, int],
    execute: Execute,
    refuse: Refuse,
    cluster_operation: Operation | None = None,
) -> Execute:
    async def execute_or_refuse(active: ActiveController, request: ControllerRequest) -> Any:
        if cluster_operation is not None and not active.authorization.is_allowed(
            request.context, cluster_operation, CLUSTER
        ):
            code = ErrorCode.cluster_authorization_failed
            return refuse(request.api_version, request.message, code, NOT_AUTHORIZED[code])
        try:
            return await execute(active, request)
        except NotControllerError:
            raise
        except ControllerError as error:
            code = error_code(error)
            return refuse(request.api_version, request.message, code, error.reason)

    CONTROLLER_APIS[api_key] = execute_or_refuse
    VERSIONS[api_key] = versions
    return execute


def controller_api(
    api_key: int,
    *,
    versions: tuple[int, int],
    refuse: Refuse,
    send: Send = forward,
    cluster_operation: Operation | None = None,
) -> Callable[[Execute], Execute]:
    """Serve an API to clients: the decorated function executes it on the active controller.

    A ControllerError of it is answered by `refuse`, and so are those who may not do
    `cluster_operation` to the cluster.
    """

    def register(execute: Execute) -> Execute:
        @handles(api_key=api_key, versions=versions)
        async def handle(request: Request, node: NodeServices) -> Any:
            return await send(request, node, refuse)

        return _add(api_key, versions, execute, refuse, cluster_operation)

    return register


def node_api(
    api_key: int, *, versions: tuple[int, int], refuse: Refuse
) -> Callable[[Execute], Execute]:
    """Serve an API between our nodes: only the active controller executes it, others refuse."""
    NODE_APIS.add(api_key)

    def register(execute: Execute) -> Execute:
        @handles(
            api_key=api_key,
            versions=versions,
            listener=Listener.CONTROLLER,
            cluster_operation=Operation.CLUSTER_ACTION,
        )
        async def handle(request: Request, node: NodeServices) -> Any:
            message, version = request.message, request.api_version
            try:
                return await node.controller.execute(
                    ControllerRequest(
                        api_key=api_key,
                        api_version=version,
                        message=message,
                        context=request.context,
                    )
                )
            except NotControllerError as error:
                return refuse(version, message, ErrorCode.not_controller, error.reason)

        return _add(api_key, versions, execute, refuse)

    return register
