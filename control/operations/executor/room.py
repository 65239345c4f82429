"""Waits before a wave until the disks of its brokers have room for it."""

import contextlib
from collections.abc import Iterable
from typing import Final

from control.kafka.errors import KafkaPortError
from control.kafka.ports import AdminPort, LogDir
from control.model.units import bytes_text
from control.operations.executor.run_context import RunContext, tell_once
from control.operations.reassignment.disks.directory_placement import Need, read_disks
from control.operations.reassignment.disks.preflight_disk import disk_needs
from planner.proposal import PartitionChange

READ_EVERY_S: Final = 2.0


async def wait_for_room(
    admin: AdminPort, changes: Iterable[PartitionChange], context: RunContext
) -> bool:
    """Until the copies of these fit, or the operation ends; whether it had to wait.

    Pre-flight counts on what earlier waves removed, and Kafka deletes the files of a removed
    replica only after ``file.delete.delay.ms``.
    """
    wave = tuple(changes)
    has_waited = False
    while not context.flags().is_ending:
        lacking = await _lacking(admin, wave)
        if not lacking:
            break
        has_waited = True
        await tell_once(context, _words(lacking))
        await context.flags().wait(READ_EVERY_S)
    return has_waited


async def _lacking(admin: AdminPort, wave: tuple[PartitionChange, ...]) -> list[Need]:
    """The needs that have no room now; brokers that do not tell have none."""
    log_dirs: list[LogDir] = []
    for broker in sorted({broker for change in wave for broker in change.adding}):
        with contextlib.suppress(KafkaPortError):
            log_dirs += await admin.log_dirs([broker])
    needs = disk_needs(read_disks(log_dirs), [wave])
    return [need for need in needs if need.needed > need.usable]


def _words(lacking: list[Need]) -> str:
    brokers = "; ".join(
        f"broker {it.broker} needs {bytes_text(it.needed)}{it.where}" for it in lacking
    )
    return (
        f"waits for room: {brokers}. Kafka deletes what left a broker after file.delete.delay.ms, "
        "a minute by default; if nothing frees, free the disk or cancel"
    )
