"""Where everything of one installation lies: data directory, ids, ports, properties files."""

import fcntl
import os
import re
import socket
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from broker.host_name import address_text
from partiscope.bundled.founded_cluster import (
    LAYOUT_FILE,
    FoundedCluster,
    LayoutError,
    recall,
    recall_or_found,
    still_drained,
    write,
    write_whole,
)
from partiscope.bundled.secure_cluster import ADMIN, SecureCluster
from partiscope.settings import ClusterSettings

LOCK_FILE: Final = ".lock"
OTHERS: Final = 0o077
"""Rights of other users of the machine, which none of our files gives."""
CONTROLLER_PORT_OFFSET: Final = 10_000
PORT_MAX: Final = 65_535
BROKER_FOLDER: Final = re.compile(r"broker-(\d+)")
PARTITION_FOLDER: Final = re.compile(r".+-\d+")
METADATA_FOLDER: Final = "__cluster_metadata-0"


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
    secure: SecureCluster | None = None
    """Keys, users and rights; None: whoever reaches the brokers may do everything."""

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
            founds = not (data / LAYOUT_FILE).exists()
            if layout.secure is not None:  # a cluster is founded once its keys are there
                hosts = {node.id: node.host for node in layout.nodes}
                layout.secure.write_files(hosts, founds=founds)
            if founds or identity != recall(data / LAYOUT_FILE):
                write(data / LAYOUT_FILE, identity)
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
    ) -> tuple[Self, FoundedCluster]:
        identity = recall_or_found(data / LAYOUT_FILE, settings)
        left_out = _left_out(data, settings)
        drained = still_drained(identity, rejoin)
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
            secure=SecureCluster(data.absolute()) if identity.secure else None,
            overrides=settings.overrides,
        )
        return layout, replace(identity, drained=drained)

    @property
    def bus_config(self) -> str | None:
        """Client properties file of its admin; None: nobody logs in."""
        return None if self.secure is None else str(self.secure.config_of(ADMIN))

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
        name = "PLAINTEXT" if self.secure is None else "SASL_SSL"
        client = f"{name}://{node.address}"
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
            **({} if self.secure is None else self.secure.properties(node.id)),
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
