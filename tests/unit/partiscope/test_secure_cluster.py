"""Keys, users and settings of a bundled cluster with logins."""

import json
import os
import ssl
import subprocess
from pathlib import Path

import pytest

from broker.config.broker_config import BrokerConfig
from control.kafka.connection.settings import KafkaSettings
from partiscope.bundled.founded_cluster import LAYOUT_FILE, LayoutError
from partiscope.bundled.part_rights import part_rights
from partiscope.bundled.secure_cluster import ADMIN, DEMO, NODE, USERS
from partiscope.connections import ConnectionSettings
from partiscope.layout import OTHERS, ClusterLayout
from partiscope.settings import ClusterSettings, Settings
from tests.support.patience import WAIT_S

SECURE = ClusterSettings(secure=True)


def _founded(data: Path, settings: ClusterSettings = SECURE) -> ClusterLayout:
    return ClusterLayout.prepare(data, settings)


def _config(data: Path, broker: int) -> BrokerConfig:
    return BrokerConfig.from_file(str(data / f"broker-{broker}.properties"))


def test_its_files_are_for_the_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    usual = os.umask(0)
    try:
        layout = _founded(tmp_path)
    finally:
        os.umask(usual)
    assert layout.secure is not None
    paths = [layout.secure.folder, *layout.secure.folder.iterdir()]
    assert len(paths) == 1 + 2 + 3 + len(USERS)
    assert not [path for path in paths if path.stat().st_mode & OTHERS]


def test_a_broker_reads_its_listeners_users_and_super_users(tmp_path: Path) -> None:
    _founded(tmp_path)
    config = _config(tmp_path, 101)
    assert {name: int(it) for name, it in config.listeners.protocols.items()} == {
        "SASL_SSL": 3,
        "CONTROLLER": 3,
    }
    assert config.authorizer is not None
    assert config.authorizer.super_users == {f"User:{NODE}", f"User:{ADMIN}"}
    assert not config.authorizer.allows_unlisted
    assert {user.name for user in config.bootstrap_users} == set(USERS)
    assert len({user.password for user in config.bootstrap_users}) == len(USERS)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "broker.example"])
def test_certificates_hold_for_the_host_and_only_by_its_authority(
    tmp_path: Path, host: str
) -> None:
    layout = _founded(tmp_path / "one", SECURE.model_copy(update={"host": host}))
    other = _founded(tmp_path / "other")
    assert layout.secure is not None
    assert other.secure is not None
    name = "-verify_hostname" if "." in host and host[0] != "1" else "-verify_ip"
    broker = layout.secure.folder / "broker-101.pem"

    def verify(ca: Path) -> int:
        words = ["openssl", "verify", "-x509_strict", "-CAfile", str(ca), name, host, str(broker)]
        return subprocess.run(words, capture_output=True, check=False, timeout=WAIT_S).returncode

    assert verify(layout.secure.ca) == 0
    assert verify(other.secure.ca) != 0
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(broker)


def test_a_client_properties_file_is_one_that_commands_take(tmp_path: Path) -> None:
    layout = _founded(tmp_path)
    assert layout.bus_config is not None
    connection = ConnectionSettings(config_file=Path(layout.bus_config))
    assert (
        connection.to_kafka(layout.bootstrap).security_options().items()
        >= {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": ADMIN,
        }.items()
    )


def test_it_stays_secure_and_keeps_authority_and_passwords(tmp_path: Path) -> None:
    first = _founded(tmp_path)
    before = _config(tmp_path, 101)
    assert first.secure is not None
    authority = first.secure.ca.read_bytes()
    again = _founded(tmp_path, ClusterSettings(brokers=4))
    assert again.secure == first.secure
    assert first.secure.ca.read_bytes() == authority
    for broker in (101, 104):
        assert _config(tmp_path, broker).bootstrap_users == before.bootstrap_users
        assert _config(tmp_path, broker).authorizer == before.authorizer


@pytest.mark.parametrize("name", ["ca.key", "ca.pem", f"{NODE}.properties", f"{DEMO}.properties"])
def test_a_file_that_is_gone_is_not_made_anew(tmp_path: Path, name: str) -> None:
    layout = _founded(tmp_path)
    assert layout.secure is not None
    (layout.secure.folder / name).unlink()
    with pytest.raises(LayoutError, match=name):
        _founded(tmp_path)
    assert not (layout.secure.folder / name).exists()


@pytest.mark.parametrize("name", ["ca.key", "ca.pem", f"{ADMIN}.properties"])
def test_a_spoilt_file_is_named_and_kept(tmp_path: Path, name: str) -> None:
    layout = _founded(tmp_path)
    assert layout.secure is not None
    spoilt = layout.secure.folder / name
    spoilt.write_text("nothing\n")
    with pytest.raises(LayoutError, match=r"Restore"):
        _founded(tmp_path)
    assert spoilt.read_text() == "nothing\n"


def test_a_cut_founding_goes_on(tmp_path: Path) -> None:
    layout = _founded(tmp_path)
    assert layout.secure is not None
    (tmp_path / LAYOUT_FILE).unlink()  # written last
    layout.secure.config_of(DEMO).unlink()
    assert _founded(tmp_path).secure == layout.secure
    assert layout.secure.config_of(DEMO).exists()


def test_a_cluster_without_logins_does_not_get_them_later(tmp_path: Path) -> None:
    assert _founded(tmp_path, ClusterSettings()).secure is None
    assert "secure" not in json.loads((tmp_path / LAYOUT_FILE).read_text())
    with pytest.raises(LayoutError, match="--secure founds a new one"):
        _founded(tmp_path)


def _connections(**given: object) -> dict[str, KafkaSettings]:
    return {it.bootstrap: it for it in Settings.model_validate(given).kafka_connections()}


def test_the_login_of_the_bus_goes_to_its_addresses_alone(tmp_path: Path) -> None:
    layout = _founded(tmp_path)
    bus = {"bus": layout.bootstrap, "bus_config": layout.bus_config}
    assert _connections(**bus)[layout.bootstrap].sasl_username == ADMIN
    one = layout.bootstrap.split(",")[1]
    assert _connections(**bus, bootstrap=one)[one].sasl_username == ADMIN
    for stranger in ("127.0.0.1:1", f"127.0.0.1:1,{one}"):
        found = _connections(**bus, bootstrap=stranger)[stranger]
        assert (found.security_protocol, found.sasl_username) == ("PLAINTEXT", None)


def test_a_connection_that_was_given_goes_before_that_of_the_bus(tmp_path: Path) -> None:
    layout = _founded(tmp_path)
    assert layout.secure is not None
    settings = Settings.model_validate(
        {
            "bus": layout.bootstrap,
            "bus_config": layout.bus_config,
            "bootstrap": layout.bootstrap,
            "connection": {"config_file": layout.secure.config_of(DEMO)},
        }
    )
    assert [it.sasl_username for it in settings.kafka_connections()] == [ADMIN, DEMO]


def test_only_super_users_lack_entries_and_no_part_may_act_as_a_broker() -> None:
    entries = list(part_rights())
    assert {entry.user for entry in entries} == set(USERS) - {NODE, ADMIN}
    assert "CLUSTER_ACTION" not in {entry.operation.name for entry in entries}


def test_a_password_that_was_changed_is_the_one_from_the_file(tmp_path: Path) -> None:
    layout = _founded(tmp_path)
    assert layout.secure is not None
    path = layout.secure.config_of(NODE)
    before = {user.name: user.password for user in _config(tmp_path, 101).bootstrap_users}
    path.write_text(path.read_text().replace(before[NODE], "another"))
    _founded(tmp_path)
    logins = [sasl.own for sasl in _config(tmp_path, 101).sasl.values()]
    assert [(it.name, it.password) for it in logins if it] == [(NODE, "another")] * 2
