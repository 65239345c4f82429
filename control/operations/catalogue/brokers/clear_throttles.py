"""Clear throttles of replication that another tool, or a move that died, has left."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from control.kafka.acl import AclOperation, Lacking
from control.kafka.errors import KafkaPortError
from control.kafka.ports import ConfigResource, ConfigScope
from control.model.units import counted
from control.operations.catalogue.fields import REASON
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import PartlyDoneError
from control.operations.executor.throttles.left_throttles import (
    LeftThrottles,
    RunningMoves,
    SetThrottle,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearThrottles(Operation):
    """Removes left throttles; those that a running move needs stay, whoever began it."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="clear_throttles",
        key="T",
        title="Clear left throttles",
        help="replication throttles that no running move needs",
        submit_label="Clear",
        confirmation=Confirmation.PREVIEW,
        fields=(REASON,),
    )
    RIGHTS: ClassVar[Lacking] = (
        (AclOperation.ALTER_CONFIGS, "cluster"),
        (AclOperation.ALTER_CONFIGS, "topic"),
    )

    throttles: tuple[SetThrottle, ...] = ()
    """Of the frozen command: what is cleared."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(reason=fields["reason"])

    @property
    def what(self) -> str:
        """For the journal."""
        return "clear left throttles"

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """Each rate and list, and what stays of it.

        :raises KafkaPortError: the cluster does not tell.
        """
        notes = []
        try:
            states = await context.moves.list()
        except KafkaPortError as error:
            states = []
            notes.append(
                f"whether a reassignment of Partiscope that waits needs one is not known: {error}"
            )
        ongoing = await context.admin.list_reassignments()
        running = RunningMoves.of(states, ongoing, site=context.site)
        notes += [running.words] if running.words else []
        found = LeftThrottles(context.admin)
        throttles = await found.read(running)
        notes += [f"broker {broker} does not tell its throttles" for broker in found.silent]
        return Effect(
            command=replace(self, throttles=throttles),
            changes=tuple(map(_change_of, throttles)),
            notes=tuple(notes),
            facts=throttles,
        )

    async def perform(self, context: OperationContext) -> Done:
        """Remove them, and nothing that came meanwhile: of each broker, then of topics.

        :raises PartlyDoneError: some are removed, others not.
        :raises KafkaPortError: none is.
        """
        parts: dict[str, list[SetThrottle]] = {}
        for throttle in self.throttles:
            is_broker = throttle.resource.scope is ConfigScope.BROKER
            where = f"broker {throttle.resource.name or 'defaults'}" if is_broker else "topics"
            parts.setdefault(where, []).append(throttle)
        failed: dict[str, KafkaPortError] = {}
        for where, some in parts.items():
            changes: dict[ConfigResource, dict[str, str | None]] = {}
            for throttle in some:
                changes.setdefault(throttle.resource, {})[throttle.config] = throttle.left
            try:
                await context.admin.alter_many_configs(changes)
            except KafkaPortError as error:
                failed[where] = error
        done = sum(len(some) for where, some in parts.items() if where not in failed)
        words = f"{counted(done, 'throttle')} cleared"
        if failed and not done:
            raise next(iter(failed.values()))
        if failed:
            raise PartlyDoneError(words, [f"{where}: {why}" for where, why in failed.items()])
        return Done(words=words, view="brokers")


def _change_of(throttle: SetThrottle) -> Change:
    then = "removed" if throttle.left is None else throttle.left
    line = f"{throttle.name}: {throttle.words} → {then}"
    return Change(throttle.name, throttle.value, throttle.left, line)
