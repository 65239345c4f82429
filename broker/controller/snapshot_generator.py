"""Writes a snapshot of the image now and then: a start need not replay everything, and the log
before it can be deleted.
"""

import logging
from collections.abc import Callable, Iterator

from broker.background import Tasks, log_failure
from broker.log.errors import ForceFailedError, LogError
from broker.metadata.image import MetadataImage
from broker.metadata.record_codec import encode_record
from broker.metadata.snapshot import image_records
from broker.raft.metadata_log import MetadataLog
from broker.raft.snapshot_id import SnapshotId

RECORDS_BETWEEN_MIN = 20_000

log = logging.getLogger(__name__)


class SnapshotGenerator:
    """Counts replayed records; at most one snapshot is being written.

    The next one is due after RECORDS_BETWEEN_MIN records, or after as many as the last one held
    when that is more, of whoever made it: at most as many records are written for snapshots as
    for changes.
    """

    def __init__(
        self, metadata_log: MetadataLog, on_force_failed: Callable[[Exception], None]
    ) -> None:
        self._log = metadata_log
        self._on_force_failed = on_force_failed
        self._records_since = 0
        self._due_after = RECORDS_BETWEEN_MIN
        self._is_writing = False
        self._tasks = Tasks("writer of metadata snapshots", log_failure)

    def note(self, records_count: int, image: MetadataImage) -> None:
        """Records were replayed and made this image."""
        self._records_since += records_count
        if self._records_since >= self._due_after and not self._is_writing:
            self._records_since = 0
            self._is_writing = True
            self._tasks.start(self._write(image))

    def note_snapshot(self, records_count: int) -> None:
        """The image came from a snapshot of so many records."""
        self._records_since = 0
        self._due_after = max(RECORDS_BETWEEN_MIN, records_count)

    async def stop(self) -> None:
        """Leave an unfinished snapshot behind; it has no valid name."""
        await self._tasks.stop()

    async def _write(self, image: MetadataImage) -> None:
        count = 0

        def values() -> Iterator[bytes]:
            nonlocal count
            for record in image_records(image):
                count += 1
                yield encode_record(record)

        id_ = SnapshotId(end_offset=image.offset + 1, epoch=image.epoch)
        try:
            await self._log.write_snapshot(id_, values())
            log.info("snapshot of the metadata at offset %d: %d records", image.offset, count)
        except ForceFailedError as error:
            self._on_force_failed(error)
        except (OSError, LogError) as error:
            log.error("the snapshot at offset %d cannot be written: %s", image.offset, error)
        finally:
            self._due_after = max(RECORDS_BETWEEN_MIN, count)
            self._is_writing = False
