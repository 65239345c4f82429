"""Connections as settings name them: properties files, named clusters, what is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import ValidationError

from control.kafka.connection.connections import settings_of
from control.kafka.connection.settings import KafkaSettings
from control.model.watched_cluster import Site
from control.operations.catalogue.moves.cancel import Cancel
from control.operations.catalogue.moves.resume import Resume
from partiscope.cli.app import run
from partiscope.cli.shared.confirm import require_control
from partiscope.cli.shared.exits import CommandError
from partiscope.cli.shared.options import known_bootstrap, settings_with, target_with
from partiscope.connections import ConnectionSettings, read_client_properties
from partiscope.identity import cluster_by_name
from partiscope.installation import Installation, Watched
from partiscope.settings import Settings, SettingsError, plain_errors
from tests.support.node_cluster import ROOT
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking

SECRET: Final = "changeit-1"


@pytest.fixture(autouse=True)
def _no_settings_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARTISCOPE_CONFIG", raising=False)
    monkeypatch.delenv("PARTISCOPE_DATA", raising=False)


def test_a_properties_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "! a comment\nsecurity.protocol:SASL_SSL\nsasl.mechanism = SCRAM-SHA-512\n"
        'sasl.jaas.config=x.ScramLoginModule required \\\n  username="j\\u00f6rg" \\\n'
        "  password='p=a;ss';\nssl.endpoint.identification.algorithm=\nretries=3\n"
    )
    assert read_client_properties(path) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "username": "jörg",
        "password": "p=a;ss",
        "ssl_check_hostname": False,
    }
    path.write_text("security.protocol=SSL\n", encoding="utf-8-sig")
    assert read_client_properties(path) == {"security_protocol": "SSL"}


def test_a_java_key_store_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("ssl.truststore.location=/etc/kafka/trust.jks\n")
    with pytest.raises(ValueError, match=r"only Java can open.*PEM"):
        ConnectionSettings.model_validate({"config_file": path})


def _java_stores(folder: Path) -> None:
    """A client's key in a JKS store, and its certificate in a trust store, by Java's own tool."""
    client = ("-keystore", "client.jks", "-storetype", "JKS", "-alias", "me")
    trust = ("-keystore", "truststore.jks", "-alias", "ca", "-noprompt")
    secret = ("-storepass", SECRET)
    for words in (
        ("-genkeypair", *client, "-keyalg", "RSA", "-dname", "CN=me", "-ext", "bc:c", *secret),
        ("-exportcert", *client, "-file", "me.crt", *secret),
        ("-importcert", *trust, "-file", "me.crt", *secret),
    ):
        subprocess.run(("keytool", *words), cwd=folder, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("keytool") is None, reason="no keytool: it comes with Java")
def test_documented_commands_make_pem_files_of_java_stores(tmp_path: Path) -> None:
    _java_stores(tmp_path)
    document = (ROOT / "docs/operate/watch.md").read_text()
    (block,) = [it for it in document.split("```") if "keytool -importkeystore" in it]
    ca, to_pkcs12, to_pem = block.strip().splitlines()
    to_pem = to_pem.replace("openssl pkcs12", f"openssl pkcs12 -passin pass:{SECRET}")
    answers = f" -srcstorepass {SECRET} -deststorepass {SECRET}"
    for line in (f"{ca} -storepass {SECRET}", to_pkcs12 + answers, to_pem):
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    given = {
        "security_protocol": "SSL",
        "ssl_cafile": tmp_path / "ca.pem",
        "ssl_certfile": tmp_path / "client.pem",
    }
    made = ConnectionSettings.model_validate(given).to_kafka("kafka1:9093")
    assert made.ssl_context is not None
    trusted = [it["subject"] for it in made.ssl_context.get_ca_certs()]
    assert ((("commonName", "me"),),) in trusted
    assert (tmp_path / "client.pem").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"security_protocol": "SASL_SSL"}, "PLAIN needs username and password"),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"},
            "oauth_token_file",
        ),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "package gssapi"),
        ({"security_protocol": "TLS"}, "security_protocol"),
        ({"config_file": "/not/there"}, "cannot read config_file '/not/there'"),
    ],
)
def test_what_is_missing_is_named(
    given: dict[str, object], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partiscope.connections.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=wanted):
        ConnectionSettings.model_validate(given)


async def test_tokens_and_passwords_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    (tmp_path / "password").write_text("first line\nsecond\n")
    connection = ConnectionSettings(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        oauth_token_file=tmp_path / "token",
    )
    token = connection.to_kafka("a:1").sasl_token
    assert token is not None
    assert await token() == "abc"
    (tmp_path / "token").unlink()
    with pytest.raises(ConnectionError, match=r"oauth_token_file '.*': there is no such file"):
        await token()  # read anew for each connection
    plain = ConnectionSettings(
        security_protocol="SASL_PLAINTEXT", username="me", password_file=tmp_path / "password"
    )
    assert plain.to_kafka("a:1").sasl_password == "first line"


def test_a_named_cluster_brings_its_connection_to_every_command(tmp_path: Path) -> None:
    (tmp_path / "partiscope.toml").write_text(
        '[clusters.prod]\nbootstrap = "b1.example:9093,b2.example:9093"\nread_only = true\n'
        '[clusters.prod.connection]\nsecurity_protocol = "SASL_PLAINTEXT"\n'
        'username = "watcher"\npassword = "hunter2"\n'
    )
    settings = settings_with(bootstrap="prod")
    assert known_bootstrap(settings) == "b1.example:9093,b2.example:9093"
    assert cluster_by_name(settings, "prod").is_read_only
    assert "hunter2" not in repr(settings)
    found = settings_of("b2.example:9093, b1.example:9093")
    assert (found.sasl_username, found.sasl_password) == ("watcher", "hunter2")
    assert settings_of("other:9092").security_protocol == "PLAINTEXT"
    forged = settings_of("evil.example:5555,b1.example:9093")
    assert (forged.bootstrap, forged.sasl_password) == ("b1.example:9093", "hunter2")
    with pytest.raises(SettingsError, match=r"no cluster 'test'.*known: prod"):
        settings_with(bootstrap="test")


def test_commands_find_what_runs_by_the_data_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    Installation(bus="127.0.0.1:9101").save(data)
    assert known_bootstrap(settings_with(data=data)) == "127.0.0.1:9101"
    watched = (Watched(bootstrap="k:9092", cluster_id="abc"),)
    Installation(bus="127.0.0.1:9101", watched=watched).save(data)
    found = settings_with(data=data)
    assert (known_bootstrap(found), found.bundled_bootstrap) == ("k:9092", "127.0.0.1:9101")
    assert target_with(data=data).watched.cluster_id == "abc"
    assert settings_of("k:9092").cluster_id == "abc", "no other cluster may answer there"
    other = settings_with(data=data, bootstrap="elsewhere:1")
    assert known_bootstrap(other) == "elsewhere:1"
    assert settings_of("elsewhere:1").cluster_id is None
    assert settings_with(data=data, finds_installation=False).bootstrap is None
    (data / "installation.json").write_text("{")
    with pytest.raises(SettingsError, match="damaged"):
        settings_with(data=data)


def test_every_command_takes_the_data_directory(tmp_path: Path) -> None:
    Installation(bus="127.0.0.1:1").save(tmp_path)
    environment = {**os.environ, "PARTISCOPE_DATA": "elsewhere"}
    # Side by side: each waits some seconds for a bus that is not there.
    begun = [
        subprocess.Popen(
            (sys.executable, "-m", "partiscope", *words, "--data", str(tmp_path)),
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for words in (["topics", "list"], ["groups", "list"], ["moves"], ["tail", "orders"])
    ]
    for command in begun:
        _, words = command.communicate(timeout=WAIT_S)
        assert command.returncode == 4, (command.args, words)
        assert "127.0.0.1:1 did not answer" in words
        assert not lacking(words, "nothing listens", f"`partiscope up --data {tmp_path}`")
        assert "Errno" not in words


SEVERAL = """
watch = ["prod", "test"]
[clusters.prod]
bootstrap = "p1:9092,p2:9092"
production = true
[clusters.test]
bootstrap = "t1:9092"
color = "teal"
read_only = true
"""


def test_several_clusters_are_shown_with_their_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "partiscope.toml").write_text(SEVERAL)
    started = settings_with(finds_installation=False)
    assert started.watching == ("prod", "test")
    assert started.bootstrap == "prod", "the first one is the usual one"
    data = tmp_path / "data"
    ids = (Watched(bootstrap="prod", cluster_id="P"), Watched(bootstrap="test", cluster_id="T"))
    Installation(bus="127.0.0.1:9101", watched=ids).save(data)
    shown = target_with(data=data).clusters
    assert [(each.name, each.cluster_id, each.flags) for each in shown] == [
        ("prod", "P", ("PRODUCTION",)),
        ("test", "T", ("read-only",)),
    ]
    assert [each.hex_color for each in shown] == ["#e03131", "#099268"]
    chosen = target_with(data=data, bootstrap="test")
    assert [each.name for each in chosen.clusters] == ["test", "prod"]
    assert (chosen.watched.cluster_id, chosen.watched.is_read_only) == ("T", True)
    assert not chosen.others[0].is_read_only, "one cluster's flag is not another's"
    by_address = settings_with(data=data, bootstrap="p2:9092").watched()
    assert by_address is not None
    assert by_address.production, "an address is no way around the flag"
    monkeypatch.setenv("PARTISCOPE_CLUSTERS__TEST__COLOR", "plaid")
    with pytest.raises(SettingsError, match="'plaid' is none of red, orange"):
        settings_with(data=data)


def test_a_production_cluster_must_be_named_and_a_read_only_one_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "partiscope.toml").write_text(SEVERAL.replace("p1:9092,p2:9092", "127.0.0.1:1"))
    monkeypatch.setenv("PARTISCOPE_BOOTSTRAP", "prod")
    delete = ["topics", "delete", "orders", "--yes"]
    assert run(delete) == 3
    assert "prod is a production cluster" in capsys.readouterr().err
    assert run([*delete, "--cluster", "prod"]) == 4, "named: on to the cluster, which is away"
    capsys.readouterr()
    assert run([*delete, "--cluster", "test"]) == 3
    assert "test is read-only" in capsys.readouterr().err


RESUME: Final = Resume(move="mv-1")


def test_what_runs_on_the_bus_is_changed_as_its_own_cluster_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A move may be of any cluster that shares the bus, not just of the usual one."""
    (tmp_path / "partiscope.toml").write_text(SEVERAL)
    monkeypatch.setenv("PARTISCOPE_BOOTSTRAP", "elsewhere:9092")
    require_control(RESUME, Site("elsewhere:9092"), None)
    with pytest.raises(CommandError, match="prod is a production cluster") as refused:
        require_control(RESUME, Site("p2:9092"), None)
    assert refused.value.status == 3
    require_control(RESUME, Site("p2:9092"), "prod")
    require_control(RESUME, Site("p2:9092"), None, is_dry_run=True)
    require_control(Cancel(move="mv-1"), Site("p2:9092"), None)
    with pytest.raises(CommandError, match="test is read-only"):
        require_control(RESUME, Site("t1:9092"), "test")
    with pytest.raises(CommandError, match="it is about prod, not about elsewhere:9092") as other:
        require_control(RESUME, Site("p1:9092"), "elsewhere:9092")
    assert other.value.status == 2


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"schema_registry": {"url": "http://u:hunter2@h/x"}}, "schema_registry.url"),
        ({"schema_registry": {"url": "ftp://u:hunter2@h/x"}}, "http(s)://HOST:PORT"),
        ({"clusters": {"a": {"bootstrap": "h:1", "schema_registry": "http://u:hunter2@h"}}}, "@h"),
        ({"metrics": {"store": "s3://KEY:hunter2@bucket/x"}}, "AWS_SECRET_ACCESS_KEY"),
        ({"metrics": {"checkpoint": "s3://KEY:hun/ter2@bucket/x"}}, "metrics.checkpoint"),
        ({"metrics": {"driver_memory": "u:hunter2@h"}}, "metrics.driver_memory"),
    ],
)
def test_an_error_of_settings_shows_no_password_of_a_url(
    document: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        Settings.model_validate(document)
    words = plain_errors(raised.value, Settings)
    assert lacking(words, told) == []
    assert "hunter2" not in words
    assert "ter2" not in words


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/a@b:c",
        "hdfs://host:8020/a@b",
        "abfss://box@account.dfs.core.windows.net/x",
        "a",
    ],
)
def test_a_store_may_have_signs_that_are_no_password(url: str) -> None:
    assert Settings.model_validate({"metrics": {"store": url}}).store == url


def test_an_address_that_is_none_is_told_without_its_password() -> None:
    with pytest.raises(ValueError, match="HOST:PORT") as raised:
        KafkaSettings(bootstrap="u:hunter2@h:1").addresses()
    assert "hunter2" not in str(raised.value)
