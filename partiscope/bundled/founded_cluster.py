"""The record of the bundled cluster that a data directory holds: its id and its founders."""

import json
import os
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from control.model.ids import ClusterId
from partiscope.settings import ClusterSettings

LAYOUT_FILE: Final = "cluster.json"
CA: Final = "ca.pem"
CA_KEY: Final = "ca.key"


class LayoutError(Exception):
    """The installation cannot be laid out as asked; the text says why and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundedCluster:
    """A data directory's record of the cluster that it holds."""

    cluster_id: str
    first_id: int
    brokers: int
    """It was founded with so many: the metadata quorum, which does not change."""
    drained: tuple[int, ...] = ()
    """Brokers that were stopped for good: no start begins them unasked."""
    secure: bool = False
    """It has logins, keys and rights, from its first start on."""


def recall_or_found(path: Path, settings: ClusterSettings) -> FoundedCluster:
    """The cluster of the file, or a new one where there is none.

    Raises:
        LayoutError: the cluster there is not the one that is asked for.
    """
    if not path.exists():
        return FoundedCluster(
            cluster_id=urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
            first_id=settings.first_id,
            brokers=settings.brokers,
            secure=settings.secure,
        )
    identity = recall(path)
    if settings.secure and not identity.secure:
        raise LayoutError(
            f"{path.parent} holds a cluster without logins, and --secure founds a new one. Choose "
            "another --data, or start this one without --secure."
        )
    if identity.first_id != settings.first_id:
        raise LayoutError(
            f"{path.parent} holds a cluster whose first broker is {identity.first_id}, and ids "
            f"stay. Start it with first_id = {identity.first_id} ([cluster] of the settings file, "
            "--first-id of `partiscope cluster`), or choose another --data."
        )
    if settings.brokers < identity.brokers:
        raise LayoutError(
            f"{path.parent} holds a cluster of {identity.brokers} brokers, which are its metadata "
            f"quorum and stay. Start it with --brokers {identity.brokers} or more, or choose "
            "another --data."
        )
    return identity


def recall(path: Path) -> FoundedCluster:
    """The cluster of the file.

    Raises:
        LayoutError: it is damaged.
    """
    try:
        identity = FoundedCluster(**json.loads(path.read_text()))
        return replace(identity, drained=tuple(map(int, identity.drained)))
    except (ValueError, TypeError) as error:
        raise LayoutError(
            f"{path} is damaged ({error}). Restore it, or choose another --data."
        ) from error


def write(path: Path, identity: FoundedCluster) -> None:
    """Keep it; older releases can read that of a cluster without logins.

    Raises:
        OSError: the disk refused.
    """
    document = asdict(identity)
    if not identity.secure:
        del document["secure"]
    write_whole(path, json.dumps(document, indent=2) + "\n")


def write_drained(data: Path, broker: int) -> None:
    """Write down that no start begins the broker unasked.

    Raises:
        LayoutError: the cluster's file is damaged.
        OSError: the disk refused.
    """
    identity = recall(data / LAYOUT_FILE)
    drained = tuple(sorted({*identity.drained, broker}))
    write(data / LAYOUT_FILE, replace(identity, drained=drained))


def still_drained(identity: FoundedCluster, rejoin: Collection[int]) -> tuple[int, ...]:
    """Drained brokers that do not rejoin.

    Raises:
        LayoutError: one that is to rejoin is not drained.
    """
    if others := sorted(set(rejoin).difference(identity.drained)):
        known = ", ".join(map(str, identity.drained)) or "none"
        raise LayoutError(f"--rejoin {others[0]}: that broker is not drained (drained: {known}).")
    return tuple(id_ for id_ in identity.drained if id_ not in rejoin)


def founded_id(data: Path) -> ClusterId | None:
    """Id of the bundled cluster that lies in a data directory; None: there is none.

    Raises:
        LayoutError: its file is damaged.
    """
    try:
        return ClusterId(json.loads((data / LAYOUT_FILE).read_text())["cluster_id"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LayoutError(
            f"cannot read {data / LAYOUT_FILE} ({error}). Restore it, or choose another --data."
        ) from error


def write_whole(path: Path, text: str) -> None:
    """Replace a small file in one step: on a full disk the old one, or none, still stands.

    Raises:
        OSError: the disk refused.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; others can never read it, whatever the umask.

    Raises:
        OSError: the disk refused.
    """
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    part.replace(path)
