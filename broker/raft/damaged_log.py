"""A metadata log that lost records to its disk: what a snapshot tells, and what is fetched again.

A voter answers for every record that it has acknowledged. One that lost some goes on as Raft
allows: it votes only for who has all that its own log held, it does not lead, and it fetches the
records again from the leader. A voter alone has nobody to fetch from, and does not start.
"""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Final

from broker.log.disk.durable import remove_if_there, replace_file
from broker.log.errors import DamagedMetadataError, StorageError
from broker.log.load.metadata_check import MetadataCheck
from broker.log.log_manager import LogManager
from broker.log.partition_log import PartitionLog
from broker.raft.snapshot_files import SnapshotFiles

FILE_NAME: Final = "lost-records"
_NOTHING: Final = (0, 0)

log = logging.getLogger(__name__)


class LostRecords:
    """Durable memory of how far the log reached before the disk lost records of it.

    `end`: (last epoch, end offset); (0, 0) when nothing is missing.

    :raises StorageError: the file cannot be read; to vote without it could lose what is committed.
    """

    def __init__(self, directory: str) -> None:
        self._path = Path(directory) / FILE_NAME
        self.end = _NOTHING
        try:
            state = json.loads(self._path.read_text(encoding="utf-8"))
            self.end = (int(state["lastEpoch"]), int(state["endOffset"]))
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{self._path} cannot be read",
                str(error),
                "Keep the directory: it holds this node's vote. Check the disk, and put the file "
                "back from a backup",
            ) from error

    def note(self, end: tuple[int, int]) -> None:
        """Records up to here were held; returns when the disk knows it."""
        self.end = max(self.end, end)
        state = {"version": 0, "lastEpoch": self.end[0], "endOffset": self.end[1]}
        replace_file(str(self._path), json.dumps(state).encode(), is_forced=True)

    def note_durable(self, end: tuple[int, int]) -> None:
        """The log is on the disk up to here: with all that was lost, the note goes."""
        if self.end != _NOTHING and end >= self.end:
            log.info("the metadata log has all records again, up to offset %d", end[1])
            self.end = _NOTHING
            remove_if_there(str(self._path))


def open_metadata_log(logs: LogManager, *, is_alone: bool, epoch_max: int) -> PartitionLog:
    """The metadata log, every batch of it checked.

    `is_alone`: no other voter has what this one lost. `epoch_max`: the epoch of this node's vote, 0
    where none was written.

    :raises DamagedMetadataError: it is damaged, and this node cannot go on without it.
    :raises StorageError: the disk refused.
    """
    # A voter alone leads before its vote for itself is on the disk.
    check = MetadataCheck(epoch_max=epoch_max + is_alone) if epoch_max else MetadataCheck()
    try:
        return logs.metadata_log(check=check)
    except DamagedMetadataError as error:
        damage = error
    try:
        return _open_behind_snapshot(logs, check, damage)
    except DamagedMetadataError as error:
        if is_alone:
            raise
        damage = error
    log.error("%s: %s. They are fetched again from the leader", damage.title, damage.reason)
    epoch, end_offset = damage.held
    LostRecords(logs.metadata_directory).note((min(epoch, check.epoch_max), end_offset))
    return logs.metadata_log(check=replace(check, may_cut=True))


def _open_behind_snapshot(
    logs: LogManager, check: MetadataCheck, damage: DamagedMetadataError
) -> PartitionLog:
    """The log from the newest snapshot on, if only segments that it makes needless are damaged."""
    snapshots = SnapshotFiles(logs.metadata_directory)
    snapshot = snapshots.read_latest(offset_max=damage.held[1])
    if snapshot is None or damage.next_base is None or snapshot.id.end_offset < damage.next_base:
        raise damage
    start_offset = snapshot.id.end_offset
    opened = logs.metadata_log(check=replace(check, from_offset=start_offset))
    log.error("%s: %s. %s is read instead", damage.title, damage.reason, snapshot.id.file_name)
    snapshots.keep_only([snapshot.id])
    opened.increment_log_start_offset(start_offset)
    return opened
