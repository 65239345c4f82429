"""Where the bundled cluster lies: identity, ports, properties, and what is refused."""

import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from broker.raft.config import parse_voters
from partiscope.bundled.founded_cluster import LayoutError
from partiscope.layout import ClusterLayout, check_port, hold, parse_overrides
from partiscope.settings import ClusterSettings
from tests.support.ports import free_ports_in_a_row


def _properties(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def test_nodes_get_consecutive_ids_ports_and_racks(tmp_path: Path) -> None:
    layout = ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=4, port=19092, first_id=0))
    assert layout.bootstrap == "127.0.0.1:19092,127.0.0.1:19093,127.0.0.1:19094,127.0.0.1:19095"
    assert [(node.id, node.rack) for node in layout.nodes] == [
        (0, "a"), (1, "b"), (2, "c"), (3, "a"),
    ]  # fmt: skip
    second = _properties(layout.nodes[1].config_file)
    assert second["node.id"] == "1"
    assert second["listeners"] == "PLAINTEXT://127.0.0.1:19093,CONTROLLER://127.0.0.1:29093"
    assert second["controller.quorum.voters"].startswith("0@127.0.0.1:29092,1@127.0.0.1:29093")


def test_the_cluster_keeps_its_id(tmp_path: Path) -> None:
    first = ClusterLayout.prepare(tmp_path, ClusterSettings())
    again = ClusterLayout.prepare(tmp_path, ClusterSettings(port=20000))
    assert first.cluster_id == again.cluster_id
    assert len(first.cluster_id) == 22


def test_a_quorum_does_not_shrink_and_ids_stay(tmp_path: Path) -> None:
    ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=3))
    with pytest.raises(LayoutError, match="Start it with --brokers 3 or more"):
        ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=1))
    with pytest.raises(LayoutError, match=r"first broker is 101\b.*ids stay"):
        ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=3, first_id=1))


def test_more_brokers_join_without_a_vote(tmp_path: Path) -> None:
    founded = ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=3))
    grown = ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=5))
    assert grown.cluster_id == founded.cluster_id
    assert [(node.id, node.is_voter) for node in grown.nodes] == [
        (101, True), (102, True), (103, True), (104, False), (105, False),
    ]  # fmt: skip
    voter, joined = (_properties(grown.nodes[index].config_file) for index in (0, 4))
    assert voter["controller.quorum.voters"] == joined["controller.quorum.voters"]
    assert [entry[:3] for entry in joined["controller.quorum.voters"].split(",")] == [
        "101", "102", "103",
    ]  # fmt: skip
    assert (voter["process.roles"], joined["process.roles"]) == ("broker,controller", "broker")
    assert joined["listeners"] == "PLAINTEXT://127.0.0.1:9096"


def test_a_port_for_controllers_is_asked_only_of_voters(tmp_path: Path) -> None:
    first = free_ports_in_a_row(2)
    ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=1, port=first))
    grown = ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=2, port=first))
    with socket.create_server(("127.0.0.1", grown.nodes[1].controller_port)):
        grown.check_ports()
    with (
        socket.create_server(("127.0.0.1", grown.nodes[0].controller_port)),
        pytest.raises(LayoutError, match="Address already in use"),
    ):
        grown.check_ports()


@pytest.mark.parametrize("first_id", [1, 101])
def test_brokers_that_hold_something_are_not_left_out(tmp_path: Path, first_id: int) -> None:
    """What they hold would be missing."""

    def prepare(brokers: int) -> ClusterLayout:
        return ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=brokers, first_id=first_id))

    fourth, fifth = first_id + 3, first_id + 4
    assert prepare(3).left_out == ()
    assert prepare(5).left_out == ()
    for name in ("__cluster_metadata-0", "gone-3.0123456789abcdef-delete"):
        (tmp_path / f"broker-{fifth}" / name).mkdir()
    (tmp_path / f"broker-{fourth}-before" / "orders-12").mkdir(parents=True)
    smaller = prepare(3)
    assert [node.id for node in smaller.nodes] == [first_id, first_id + 1, first_id + 2]
    assert smaller.left_out == (fourth, fifth)
    (tmp_path / f"broker-{fifth}" / "orders-12").mkdir()
    names = f"{fourth},{fifth}"
    with pytest.raises(LayoutError, match=rf"--brokers 5\..*--remove-brokers {names} "):
        prepare(3)
    with pytest.raises(LayoutError, match=rf"--remove-brokers {fifth} .* --brokers 4\."):
        prepare(4)
    assert prepare(5).left_out == ()


def test_a_damaged_identity_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(LayoutError, match="is damaged"):
        ClusterLayout.prepare(tmp_path, ClusterSettings())
    assert (tmp_path / "cluster.json").read_text() == "{"


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(LayoutError, match="Choose a writable one"):
        ClusterLayout.prepare(tmp_path / "data", ClusterSettings())


def test_a_taken_port_is_named_with_the_flag_that_helps(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        layout = ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=1, port=port))
        with pytest.raises(LayoutError, match=rf"127.0.0.1:{port}: Address already in use.*--port"):
            layout.check_ports()


def test_controller_ports_stay_in_range(tmp_path: Path) -> None:
    layout = ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=1, port=60_000))
    assert layout.nodes[0].controller_port == 50_000


def test_ports_beyond_the_last_one_are_refused(tmp_path: Path) -> None:
    """Whoever holds one of the others."""
    layout = ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=3, port=65_534))
    with socket.socket() as held:
        with suppress(OSError):  # Then somebody else holds it.
            held.bind(("127.0.0.1", layout.nodes[0].controller_port))
        with pytest.raises(LayoutError, match=r"there is no port 65536.*--port"):
            layout.check_ports()


def test_a_directory_that_runs_is_not_started_from_again(tmp_path: Path) -> None:
    """Its brokers' ports would be rewritten under them."""
    hold(tmp_path)
    other = f"import partiscope.layout as it; it.hold(it.Path({str(tmp_path)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", other], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "is in use" in done.stderr
    assert "choose another --data" in done.stderr


def test_on_a_full_disk_nothing_is_left_half_written(tmp_path: Path) -> None:
    """What was there still stands; what was not there does not seem to be."""
    ClusterLayout.prepare(tmp_path, ClusterSettings(brokers=1))
    (tmp_path / "new").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    full = (
        "import resource, sys; from pathlib import Path\n"
        "from partiscope.installation import Installation\n"
        "from partiscope.bundled.founded_cluster import LayoutError\n"
        "from partiscope.layout import ClusterLayout\n"
        "from partiscope.settings import ClusterSettings\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "settings, data = ClusterSettings(brokers=1, port=20000), Path(sys.argv[1])\n"
        "for place in (data, data / 'new'):\n"
        "    for act in (lambda: ClusterLayout.prepare(place, settings),\n"
        "                lambda: Installation(bus='b').save(place)):\n"
        "        try: act()\n"
        "        except LayoutError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", full, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("Choose a writable one") == 4, done.stdout
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_overrides_are_kafka_properties(tmp_path: Path) -> None:
    overrides = parse_overrides(["log.segment.bytes=1048576", "a.b=c=d"])
    layout = ClusterLayout.prepare(tmp_path, ClusterSettings(overrides=overrides))
    properties = _properties(layout.nodes[0].config_file)
    assert properties["log.segment.bytes"] == "1048576"
    assert properties["a.b"] == "c=d"
    with pytest.raises(LayoutError, match="is not key=value"):
        parse_overrides(["nonsense"])


def test_what_an_installation_writes_is_for_its_own_user_alone(tmp_path: Path) -> None:
    """Also where whoever starts it lets others read: records and events lie there."""
    data = tmp_path / "data"
    begun = "import os, partiscope.layout as it; os.umask(0o022); it.hold(it.Path({0!r}))"
    write = "; it.Path({0!r}, 'logs').mkdir(); it.write_whole(it.Path({0!r}, 'logs', 'x'), 'x')"
    subprocess.run([sys.executable, "-c", (begun + write).format(str(data))], check=True)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (data, *data.rglob("*"))}
    assert modes == {"data": "0o700", ".lock": "0o600", "logs": "0o700", "x": "0o600"}


def test_addresses_of_version_6_have_brackets_before_their_port(tmp_path: Path) -> None:
    layout = ClusterLayout.prepare(tmp_path, ClusterSettings(host="[::1]", port=19_092, brokers=2))
    assert layout.bootstrap == "[::1]:19092,[::1]:19093"
    told = _properties(layout.nodes[1].config_file)
    assert told["advertised.listeners"] == "PLAINTEXT://[::1]:19093"
    assert [it.host for it in parse_voters(told["controller.quorum.voters"])] == ["::1", "::1"]


def test_a_taken_port_of_version_6_is_named(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET6) as held:
        try:
            held.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no ::1")
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(LayoutError, match=rf"\[::1\]:{port}"):
            check_port("::1", port, flag="--port")
