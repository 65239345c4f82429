"""Where everything of one installation lies: data directory, ids, ports, properties files."""

import fcntl
import json
import os
import re
import socket
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Self

from broker.host_name import address_text
from control.model.ids import ClusterId
from partiscope.settings import ClusterSettings

LAYOUT_FILE: Final = "cluster.json"
LOCK_FILE: Final = ".lock"
OTHERS: Final = 0o077
"""Rights of other users of the machine, which none of our files gives."""
CONTROLLER_PORT_OFFSET: Final = 10_000
PORT_MAX: Final = 65_535
BROKER_FOLDER: Final = re.compile(r"broker-(\d+)")
PARTITION_FOLDER: Final = re.compile(r".+-\d+")
METADATA_FOLDER: Final = "__cluster_metadata-0"


class LayoutError(Exception):
    """The installation cannot be laid out as asked; the text says why and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One broker of the bundled cluster."""

    id: int
    host: str
    port: int
    rack: str
    log_dir: Path
    config_file: Path
    is_voter: bool
    """Of the metadata quorum; the others are brokers alone."""

    @property
    def controller_port(self) -> int:
        """Where the other nodes reach its part of the metadata quorum."""
        above = self.port + CONTROLLER_PORT_OFFSET
        return above if above <= PORT_MAX else self.port - CONTROLLER_PORT_OFFSET

    @property
    def ports(self) -> tuple[int, ...]:
        """Those that it listens on."""
        return (self.port, self.controller_port) if self.is_voter else (self.port,)

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return address_text(self.host, self.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Identity:
    """A data directory's record of the cluster that it holds."""

    cluster_id: str
    first_id: int
    brokers: int
    """It was founded with so many: the metadata quorum, which does not change."""
    drained: tuple[int, ...] = ()
    """Brokers that were stopped for good: no start begins them unasked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLayout:
    """The bundled cluster on disk and on the network.

    The brokers that it was founded with are its metadata quorum. Started with more of them, the
    others join as brokers alone; started with fewer again, those left out must hold nothing.
    """

    cluster_id: str
    nodes: tuple[Node, ...]
    """Those that are started."""
    voters: tuple[Node, ...] = ()
    """The metadata quorum, drained ones included."""
    overrides: dict[str, str]
    drained: tuple[Node, ...] = ()
    """They were drained, and are not started."""
    left_out: tuple[int, ...] = ()
    """Ids of brokers that ran before, hold nothing, and are not started any more."""

    @property
    def bootstrap(self) -> str:
        """``host:port,…`` of all brokers."""
        return ",".join(node.address for node in self.nodes)

    @classmethod
    def prepare(
        cls, data: Path, settings: ClusterSettings, *, rejoin: Collection[int] = ()
    ) -> Self:
        """Create what is missing, refuse what does not fit, write the properties files.

        ``rejoin``: drained brokers that are to be started again.

        Raises:
            LayoutError: the directory holds another cluster, or cannot be written.
        """
        try:
            data.mkdir(parents=True, exist_ok=True)
            layout, identity = cls._planned(data, settings, rejoin)
            if not (data / LAYOUT_FILE).exists() or identity != _recall(data / LAYOUT_FILE):
                _write(data / LAYOUT_FILE, identity)
            layout._write_configs()
        except OSError as error:
            raise _unusable(data, error) from error
        return layout

    @classmethod
    def planned(cls, data: Path, settings: ClusterSettings) -> Self:
        """The layout that ``prepare`` would write.

        Raises:
            LayoutError: the directory holds another cluster, or cannot be read.
        """
        try:
            return cls._planned(data, settings, ())[0]
        except OSError as error:
            raise _unusable(data, error) from error

    @classmethod
    def _planned(
        cls, data: Path, settings: ClusterSettings, rejoin: Collection[int]
    ) -> tuple[Self, _Identity]:
        identity = _recall_or_found(data / LAYOUT_FILE, settings)
        left_out = _left_out(data, settings)
        drained = _still_drained(identity, rejoin)
        nodes = tuple(
            _node(data, settings, index, is_voter=index < identity.brokers)
            for index in range(settings.brokers)
        )
        layout = cls(
            cluster_id=identity.cluster_id,
            nodes=tuple(node for node in nodes if node.id not in drained),
            voters=tuple(node for node in nodes if node.is_voter),
            drained=tuple(node for node in nodes if node.id in drained),
            left_out=left_out,
            overrides=settings.overrides,
        )
        return layout, replace(identity, drained=drained)

    def properties(self) -> Iterator[dict[str, str]]:
        """Those of each broker that is started."""
        voters = ",".join(f"{n.id}@{address_text(n.host, n.controller_port)}" for n in self.voters)
        for node in self.nodes:
            yield self._properties(node, voters)

    def check_ports(self) -> None:
        """Refuse to start on ports that somebody else holds.

        Raises:
            LayoutError: naming a port that there is not, or the first taken one.
        """
        ports = [(node.host, port) for node in self.nodes for port in node.ports]
        # A port that there is not comes first: nobody need end what holds another one.
        for host, port in sorted(ports, key=lambda it: it[1] <= PORT_MAX):
            check_port(host, port, flag="--port")

    def _write_configs(self) -> None:
        for node, properties in zip(self.nodes, self.properties(), strict=True):
            node.log_dir.mkdir(parents=True, exist_ok=True)
            text = "".join(f"{key}={value}\n" for key, value in properties.items())
            write_whole(node.config_file, text)

    def _properties(self, node: Node, voters: str) -> dict[str, str]:
        factor = str(min(3, len(self.nodes)))
        client = f"PLAINTEXT://{node.address}"
        quorum = address_text(node.host, node.controller_port)
        controller = f",CONTROLLER://{quorum}" if node.is_voter else ""
        return {
            "process.roles": "broker,controller" if node.is_voter else "broker",
            "node.id": str(node.id),
            "cluster.id": self.cluster_id,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{client}{controller}",
            "advertised.listeners": client,
            "broker.rack": node.rack,
            "log.dirs": str(node.log_dir),
            # Kafka's own quick start: small offsets topic, no wait before the first rebalance.
            "offsets.topic.num.partitions": "10",
            "offsets.topic.replication.factor": factor,
            "group.initial.rebalance.delay.ms": "0",
            **self.overrides,
        }


def _node(data: Path, settings: ClusterSettings, index: int, *, is_voter: bool) -> Node:
    node_id = settings.first_id + index
    return Node(
        id=node_id,
        host=settings.host,
        port=settings.port + index,
        rack=settings.racks[index % len(settings.racks)],
        log_dir=data.absolute() / f"broker-{node_id}",
        config_file=data.absolute() / f"broker-{node_id}.properties",
        is_voter=is_voter,
    )


def _recall_or_found(path: Path, settings: ClusterSettings) -> _Identity:
    if not path.exists():
        return _Identity(
            cluster_id=urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
            first_id=settings.first_id,
            brokers=settings.brokers,
        )
    identity = _recall(path)
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


def _recall(path: Path) -> _Identity:
    try:
        identity = _Identity(**json.loads(path.read_text()))
        return replace(identity, drained=tuple(map(int, identity.drained)))
    except (ValueError, TypeError) as error:
        raise LayoutError(
            f"{path} is damaged ({error}). Restore it, or choose another --data."
        ) from error


def _write(path: Path, identity: _Identity) -> None:
    write_whole(path, json.dumps(asdict(identity), indent=2) + "\n")


def write_drained(data: Path, broker: int) -> None:
    """Write down that no start begins the broker unasked.

    Raises:
        LayoutError: the cluster's file is damaged.
        OSError: the disk refused.
    """
    identity = _recall(data / LAYOUT_FILE)
    drained = tuple(sorted({*identity.drained, broker}))
    _write(data / LAYOUT_FILE, replace(identity, drained=drained))


def _still_drained(identity: _Identity, rejoin: Collection[int]) -> tuple[int, ...]:
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


def _left_out(data: Path, settings: ClusterSettings) -> tuple[int, ...]:
    """Brokers that ran before and are not to be started: they must hold nothing.

    Raises:
        LayoutError: one of them holds replicas, which would be missing.
    """
    last = settings.first_id + settings.brokers - 1
    paths = data.iterdir() if data.exists() else ()
    folders = {int(found[1]): path for path in paths if (found := _broker_folder(path))}
    left_out = tuple(sorted(id_ for id_ in folders if id_ > last))
    held = {id_: count for id_ in left_out if (count := _partitions(folders[id_]))}
    if held:
        needed = max(held) - settings.first_id + 1
        names = ",".join(str(id_) for id_ in range(last + 1, max(held) + 1))
        raise LayoutError(
            f"{data} holds a cluster of {needed} brokers: {sum(held.values())} replicas lie on "
            f"{', '.join(map(str, held))}. Start it with --brokers {needed}. To do without these, "
            f"then `partiscope plan --remove-brokers {names} --out plan.json`, `partiscope "
            f"reassign plan.json`, and start it with --brokers {settings.brokers}."
        )
    return left_out


def _broker_folder(path: Path) -> re.Match[str] | None:
    return BROKER_FOLDER.fullmatch(path.name) if path.is_dir() else None


def _partitions(folder: Path) -> int:
    """How many replicas a broker holds, without its copy of the metadata."""
    names = (path.name for path in folder.iterdir() if path.is_dir())
    return sum(
        PARTITION_FOLDER.fullmatch(name) is not None and name != METADATA_FOLDER for name in names
    )


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


def hold(data: Path) -> None:
    """Take a data directory for this process, for as long as it runs.

    Whoever else starts from it would rewrite the ports of brokers that run. All that this process
    and its children make from here on is for their user alone.

    Raises:
        LayoutError: another process has it, or it cannot be written.
    """
    try:
        os.umask(OTHERS)
        data.mkdir(parents=True, exist_ok=True)
        lock = os.open(data / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
    except BlockingIOError as error:
        raise LayoutError(
            f"data directory {data} is in use: `partiscope up` or `cluster` runs from it already "
            f"(`fuser {data / LOCK_FILE}` names it). End that one, or choose another --data."
        ) from error
    except OSError as error:
        raise _unusable(data, error) from error


def _unusable(data: Path, error: OSError) -> LayoutError:
    return LayoutError(
        f"cannot use data directory {data}: {error.strerror}. Choose a writable one with --data."
    )


def check_port(host: str, port: int, *, flag: str) -> None:
    """Refuse to start on a port that somebody else holds.

    Raises:
        LayoutError: with how to find who holds it, and the flag that chooses another.
    """
    if port > PORT_MAX:
        raise LayoutError(f"there is no port {port}: the last one is {PORT_MAX}. Lower {flag}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise LayoutError(
                f"cannot listen on {address_text(host, port)}: {error.strerror}. Stop what "
                f"listens there (`ss -ltnp 'sport = :{port}'` names it) or choose another {flag}."
            ) from error


def parse_overrides(pairs: list[str]) -> dict[str, str]:
    """``key=value`` flags to properties.

    Raises:
        LayoutError: naming the pair that is not one.
    """
    for pair in pairs:
        if not re.fullmatch(r"[a-z][a-z0-9.]*=.*", pair):
            raise LayoutError(f"--override {pair!r} is not key=value with a Kafka property name")
    return dict(pair.split("=", 1) for pair in pairs)
