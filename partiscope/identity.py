"""Which cluster a command is about: by its id, however it was named.

An installation knows the ids of what it runs and watches; any other cluster is asked for its own.
Figures, operations and moves are looked for under that id alone, and the settings' flags
(production, read-only) follow it: no other address leads around them.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Final

from broker.host_name import address_text
from control.access.login import use_login
from control.kafka.connection.connections import settings_of, use_connections
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError, UnreachableError
from control.kafka.records.masks import use_masks
from control.model.command_line import CommandFlags
from control.model.ids import ClusterId
from control.model.watched_cluster import Site, WatchedCluster, is_of_any
from control.operations.broker_stop_client import SOCKET_FILE
from control.operations.bus.chain import use_chain
from control.operations.bus.proof import use_keys
from control.operations.errors import NotConfiguredError
from control.views.tour import Offer
from partiscope.bundled.founded_cluster import founded_id
from partiscope.installation import find_installation
from partiscope.journal_chain import ChainFile
from partiscope.proof_keys import KeyFiles
from partiscope.settings import NamedCluster, Settings, SettingsError, load_settings

ATTEMPTS_MAX: Final = 2
"""Of asking a cluster who it is: somebody waits for the first word."""
BUS_TOPICS: Final = ("__partiscope_metrics", "__partiscope_operations")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster that a command is about, and where its operations are."""

    watched: WatchedCluster
    bus: str | None
    """None: nobody carries out operations on it from here."""
    bus_id: str | None = None
    others: tuple[WatchedCluster, ...] = ()
    """Further clusters on the same bus."""
    store: str = ""
    """Folder or URL of its figures."""
    flags: CommandFlags = field(default_factory=CommandFlags)
    """What other commands must carry to be about the same."""
    tour: Offer = Offer.NONE
    unreached: UnreachableError | None = None
    """Why it did not answer; what is known of it is known by the installation."""

    @property
    def clusters(self) -> tuple[WatchedCluster, ...]:
        """All that screens show, the one that was chosen first."""
        return (self.watched, *self.others)

    def connections(self) -> list[KafkaSettings]:
        """Each bound to the id that must answer there."""
        bound = [
            settings_of(each.bootstrap, cluster_id=each.cluster_id)
            for each in self.clusters
            if each.bootstrap and each.cluster_id
        ]
        if self.bus is not None and self.bus_id is not None:
            bound.append(settings_of(self.bus, cluster_id=self.bus_id))
        return bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A cluster's id and addresses, as it tells them."""

    cluster_id: ClusterId
    addresses: str
    """``host:port,…`` at which its brokers want to be reached."""
    is_bus: bool
    """It carries metrics and operations of Partiscope: brokers of ours do from the start."""


def target_of(
    settings: Settings, *, given: str | None, bus: str | None = None, has_store: bool = False
) -> Target:
    """The cluster that ``given`` names, by name or address; None: the usual one of the data
    directory, or, where there is none, the one whose store was named (``has_store``).

    Raises:
        SettingsError: there is no such name, or nothing was ever started.
        KafkaPortError: only the cluster itself could say who it is, and it does not.
    """
    here, own_bus = watched_here(settings), bus or load_settings().bus
    if given is None and here:
        return _of_here(settings, here[0], here, own_bus)
    given = given or own_bus
    if given is None:
        if not has_store:
            raise nothing_started(settings)
        store_alone = WatchedCluster(cluster_id=settings.shown_cluster)
        return Target(watched=store_alone, bus=None)
    by_name = next((each for each in here if each.name == given in settings.clusters), None)
    if by_name is not None:
        return _of_here(settings, by_name, here, own_bus)
    return _asked(settings, given, here, own_bus)


def watched_here(settings: Settings) -> tuple[WatchedCluster, ...]:
    """Clusters that the installation in the data directory runs or watches, the default first."""
    found = find_installation(settings.data)
    if found is None:
        return ()
    if not found.watched:
        own = _shown(settings, "", settings.bus or found.bus, founded_id(settings.data))
        return (replace(own, outages=str(settings.data.absolute() / SOCKET_FILE)),)
    return tuple(
        replace(
            _shown(
                settings,
                each.bootstrap,
                settings.cluster_at(each.bootstrap).bootstrap,
                ClusterId(each.cluster_id),
            ),
            is_collected=True,
        )
        for each in found.watched
    )


def cluster_by_name(settings: Settings, given: str) -> WatchedCluster:
    """A cluster by name or address, from the settings alone; its id is not asked for.

    Raises:
        SettingsError: there is no such name.
    """
    return _shown(settings, given, settings.cluster_at(given).bootstrap, None)


def cluster_of_move(settings: Settings, bootstrap: str, cluster_id: str) -> WatchedCluster:
    """The cluster that a record on the bus names by address and id (empty: an older one)."""
    here = watched_here(settings)
    known = next((it for it in here if cluster_id and it.cluster_id == cluster_id), None)
    if known is not None:
        return known
    name = settings.name_at(bootstrap)
    if not name and cluster_id:
        name = _flagged_with(settings, ClusterId(cluster_id))
    return _shown(settings, name or bootstrap, bootstrap, ClusterId(cluster_id) or None)


def cluster_of_command(settings: Settings, bus: str, site: Site) -> WatchedCluster:
    """The configured cluster that a command on the bus is about: by its id, or by one of its
    addresses. Only configured addresses are asked.

    Raises:
        NotConfiguredError: there is none.
    """
    named = {name: it.bootstrap for name, it in settings.clusters.items()}
    watched = {name: settings.cluster_at(name).bootstrap for name in settings.watching}
    known = [
        *watched_here(settings),
        *(_shown(settings, name, at, None) for name, at in {**watched, **named, "": bus}.items()),
    ]
    by_id = [it for it in known if site.cluster_id and it.cluster_id == site.cluster_id]
    by_address = [it for it in known if is_of_any(site.bootstrap, [str(it.bootstrap)])]
    if found := by_id or by_address:
        return found[0]
    if site.cluster_id:
        ids = asyncio.run(_ids_of([str(it.bootstrap) for it in known]))
        for each, its in zip(known, ids, strict=True):
            if its == site.cluster_id:
                return each
    told = dict.fromkeys(f"{it.name or 'its bus'} at {it.bootstrap}" for it in known)
    raise NotConfiguredError(site.bootstrap, list(told))


def nothing_started(settings: Settings) -> SettingsError:
    """Nobody has said which cluster, and there is no usual one."""
    data = settings.data.absolute()
    return SettingsError(
        f"nothing was ever started from data directory {data}: "
        f"`partiscope up --data {quote(str(data))}` "
        "starts a cluster there. Or name the cluster (--bootstrap HOST:PORT), or the --data of "
        "the one that runs."
    )


def bind(settings: Settings, target: Target | None) -> None:
    """From here on every connection of this process is made as the settings say, and to the
    clusters that are meant."""
    use_keys(KeyFiles(settings.key_file, settings.proof.further_key_files))
    use_login(settings.users_file.process_login)
    use_chain(ChainFile(settings.chain_file))
    use_masks()
    if settings.masking:
        from control.messages.masking import masks_by  # decoders come with it

        use_masks(masks_by([it.rule for it in settings.masking], settings.name_at))
    use_connections(settings.kafka_connections())
    if target is not None:
        use_connections([*settings.kafka_connections(), *target.connections()])


def usual_target(settings: Settings, given: str | None) -> Target | None:
    """The default cluster, as far as it is known without asking; nothing if an address was
    given."""
    here = () if given is not None and given not in settings.clusters else watched_here(settings)
    return _of_here(settings, here[0], here, load_settings().bus) if here else None


def _of_here(
    settings: Settings,
    watched: WatchedCluster,
    here: Collection[WatchedCluster],
    own_bus: str | None,
) -> Target:
    found = find_installation(settings.data)
    usual_bus = None if found is None else found.bus
    return Target(
        watched=watched,
        bus=own_bus or usual_bus,
        bus_id=founded_id(settings.data) if own_bus in (None, usual_bus) else None,
        others=tuple(each for each in here if each.cluster_id != watched.cluster_id),
    )


def _asked(
    settings: Settings, given: str, here: Collection[WatchedCluster], own_bus: str | None
) -> Target:
    at = settings.cluster_at(given)
    try:
        found = asyncio.run(identify(at.bootstrap))
    except UnreachableError as error:
        known = next((it for it in here if is_of_any(at.bootstrap, [str(it.bootstrap)])), None)
        if known is None:
            raise
        return replace(_of_here(settings, known, here, own_bus), unreached=error)
    known = next((it for it in here if it.cluster_id == found.cluster_id), None)
    name = given if given in settings.clusters else _name_of(settings, at.bootstrap, found)
    if known is not None:
        flagged = _shown(settings, name or known.name, at.bootstrap, found.cluster_id)
        watched = replace(
            flagged,
            name=name or known.name,
            is_collected=known.is_collected,
            outages=known.outages,
        )
        return _of_here(settings, watched, here, own_bus)
    watched = _shown(settings, name or given, at.bootstrap, found.cluster_id)
    return Target(
        watched=replace(
            watched,
            is_collected=own_bus is not None and not found.is_bus,
            unwatched=_elsewhere(watched) if found.is_bus else _how_to_watch(watched),
        ),
        bus=own_bus or (at.bootstrap if found.is_bus else None),
    )


async def identify(bootstrap: str) -> Identity:
    """Ask a cluster who it is.

    Raises:
        KafkaPortError: it does not answer, or does not let us in.
    """
    from control.kafka.admin.kafka_admin import KafkaAdmin  # screens start without a Kafka client

    anyone = replace(settings_of(bootstrap), cluster_id=None, attempts_max=ATTEMPTS_MAX)
    async with KafkaAdmin.to(anyone) as admin:
        described = await admin.describe_cluster()
        carried = await admin.topics(BUS_TOPICS, leaves_out_unknown=True)
    return Identity(
        cluster_id=ClusterId(described.cluster_id),
        addresses=",".join(address_text(each.host, each.port) for each in described.brokers),
        is_bus=bool(carried),
    )


def _name_of(settings: Settings, bootstrap: str, found: Identity) -> str:
    """The named cluster that has one of these addresses, or the same id; empty: none has."""
    name = settings.name_at(bootstrap) or settings.name_at(found.addresses)
    return name or _flagged_with(settings, found.cluster_id)


def _flagged_with(settings: Settings, cluster_id: ClusterId) -> str:
    """The named cluster that has a flag and answers with this id; empty: none does. Clusters
    without a flag are not asked: nothing depends on it."""
    flagged = [n for n, it in settings.clusters.items() if it.production or it.read_only]
    ids = asyncio.run(_ids_of([settings.clusters[each].bootstrap for each in flagged]))
    return next((n for n, id_ in zip(flagged, ids, strict=True) if id_ == cluster_id), "")


async def _ids_of(addresses: Collection[str]) -> list[ClusterId | None]:
    """Ids of the clusters that answer, asked side by side."""

    async def ask(bootstrap: str) -> ClusterId | None:
        try:
            return (await identify(bootstrap)).cluster_id
        except KafkaPortError:
            return None

    return await asyncio.gather(*map(ask, addresses))


def _shown(
    settings: Settings, name: str, bootstrap: str, cluster_id: ClusterId | None
) -> WatchedCluster:
    """With the flags of the named cluster that it is."""
    named = name if name in settings.clusters else settings.name_at(bootstrap)
    cluster = settings.clusters.get(named) or NamedCluster(bootstrap=bootstrap)
    return WatchedCluster(
        name=named or name,
        bootstrap=bootstrap,
        cluster_id=cluster_id,
        color=cluster.color,
        is_production=cluster.production,
        is_read_only=settings.read_only or cluster.read_only,
        journal_hold_s=settings.journal_hold_s,
    )


def _elsewhere(watched: WatchedCluster) -> str:
    return (
        f"the figures of {watched.name} (cluster {watched.cluster_id}) are in the data directory "
        "that it was started from: name that by --data, or its store by --store"
    )


def _how_to_watch(watched: WatchedCluster) -> str:
    return (
        f"nobody collects figures of {watched.name} (cluster {watched.cluster_id}) here; "
        f"`partiscope up --bootstrap {quote(watched.name)}` does, with a data directory of its own "
        "(--data)"
    )
