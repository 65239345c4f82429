"""A node's data directory: whose it is, who uses it now, whether it was left in order.

`meta.properties` (version 1) names cluster, node and directory; `.lock` is held as long as a
broker runs; `.kafka_cleanshutdown` stands only between a clean shutdown and the next start.
Source: org.apache.kafka.metadata.properties.MetaProperties, CleanShutdownFileHandler (Kafka 4.x).
"""

import fcntl
import os
from uuid import UUID

from broker.log.checkpoint.checkpoint_format import (
    CLEAN_SHUTDOWN_FILE,
    META_PROPERTIES_FILE,
    decode_clean_shutdown,
    decode_properties,
    encode_clean_shutdown,
    encode_properties,
    read_file,
    write_file,
)
from broker.log.disk.durable import force_file
from broker.log.errors import (
    LogDirError,
    LogDirInUseError,
    LogDirMismatchError,
    StorageError,
    storage_error,
)
from broker.log.names import decode_uuid, encode_uuid, new_directory_id

LOCK_FILE = ".lock"


class DataDirectory:
    """A locked directory; `directory_id` is its own id, the same for its whole life."""

    def __init__(self, path: str, lock_fd: int, directory_id: UUID) -> None:
        self.path = path
        self.directory_id = directory_id
        self._lock_fd = lock_fd

    @classmethod
    def open(cls, path: str, *, node_id: int, cluster_id: str) -> "DataDirectory":
        """Lock the directory (made if need be) and see that it is this node's.

        :raises LogDirInUseError: another process holds it.
        :raises LogDirMismatchError: it is another node's or another cluster's.
        :raises LogDirError: it cannot be written.
        """
        lock_fd = _lock(path)
        try:
            directory_id = _settle_identity(path, node_id, cluster_id)
        except BaseException:
            os.close(lock_fd)
            raise
        return cls(path, lock_fd, directory_id)

    def file(self, name: str) -> str:
        """The path of a file in it."""
        return f"{self.path}/{name}"

    def take_clean_shutdown(self) -> int | None:
        """The broker epoch of the last clean shutdown (-1 unknown), once; None after a crash.

        :raises StorageError: the mark cannot be removed.
        """
        path = self.file(CLEAN_SHUTDOWN_FILE)
        content = read_file(path)
        if content is None:
            return None
        try:
            os.unlink(path)
            force_file(self.path)  # or it could be there again after a power failure
        except OSError as error:
            raise storage_error(f"Removing {path} failed", error) from error
        return decode_clean_shutdown(content)

    def mark_clean_shutdown(self, broker_epoch: int) -> None:
        """Say that everything was closed in order.

        :raises StorageError: the disk refused.
        """
        path = self.file(CLEAN_SHUTDOWN_FILE)
        write_file(path, encode_clean_shutdown(broker_epoch), is_forced=True)

    def release(self) -> None:
        """Let another process have it."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


def _lock(path: str) -> int:
    try:
        os.makedirs(path, exist_ok=True)
        lock_fd = os.open(f"{path}/{LOCK_FILE}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        cause = storage_error(f"The data directory {path} cannot be written", error)
        raise LogDirError(cause.title, cause.reason, cause.next_step) from error
    try:
        # The first sort of lock keeps out other openers of ours, the second one Java's.
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock_fd)
        raise LogDirInUseError(
            f"The data directory {path} is in use",
            "another broker process holds its lock",
            "Stop that process (fuser or lsof on the .lock file tells its id), or give this "
            "broker another log.dirs",
        ) from error
    return lock_fd


def _settle_identity(path: str, node_id: int, cluster_id: str) -> UUID:
    meta_path = f"{path}/{META_PROPERTIES_FILE}"
    content = read_file(meta_path)
    if content is None:
        directory_id = new_directory_id()
        properties = {
            "version": "1",
            "cluster.id": cluster_id,
            "node.id": str(node_id),
            "directory.id": encode_uuid(directory_id),
        }
        try:
            write_file(meta_path, encode_properties(properties), is_forced=True)
        except StorageError as error:
            raise LogDirError(error.title, error.reason, error.next_step) from error
        return directory_id
    properties = decode_properties(content)
    _check(meta_path, "cluster.id", properties.get("cluster.id"), cluster_id)
    found_node = properties.get("node.id", properties.get("broker.id"))
    _check(meta_path, "node.id", found_node, str(node_id))
    try:
        return decode_uuid(properties["directory.id"])
    except (KeyError, ValueError):
        return UUID(int=0)


def _check(meta_path: str, name: str, found: str | None, expected: str) -> None:
    if found != expected:
        raise LogDirMismatchError(
            f"{os.path.dirname(meta_path)} belongs to another "
            + ("cluster" if name == "cluster.id" else "node"),
            f"{meta_path} says {name}={found}, this broker is configured with {name}={expected}",
            "Correct log.dirs or the configuration; start with an empty directory only if the "
            "data in this one is not needed",
        )
