"""The users file: written whole, for its owner alone; what cannot be read lets nobody in."""

import json
import os
import stat
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from unittest.mock import patch

import pytest

from control.access.login import OPERATING_SYSTEM, PASSWORD
from control.access.roles import ADMIN, BUILT_IN, EVERYWHERE, VIEWER
from partiscope.access.private_file import AccessFileError
from partiscope.access.users_file import User, UsersFile, hashed

SECRET = "correct horse battery"


@pytest.fixture(scope="module")
def secret_hash() -> str:
    return hashed(SECRET)


@pytest.fixture
def users(tmp_path: Path, secret_hash: str) -> UsersFile:
    file = UsersFile(tmp_path / "data" / "users.json", BUILT_IN)
    with file.changing() as found:
        found["alice"] = User(name="alice", password=secret_hash, roles={EVERYWHERE: "admin"})
        found["by.proxy"] = User(name="by.proxy", roles={"prod": "viewer"})
    return file


def test_it_is_for_its_owner_alone_and_holds_no_password(users: UsersFile) -> None:
    assert stat.S_IMODE(users.path.stat().st_mode) == 0o600
    assert SECRET not in users.path.read_text()
    assert "$argon2id$" in users.path.read_text()
    assert not [it.name for it in users.path.parent.iterdir() if it.name.endswith("tmp")]


def test_the_password_alone_is_the_password(users: UsersFile) -> None:
    assert users.verify("alice", SECRET)
    for name, password in (
        ("alice", SECRET + "x"), ("alice", ""), ("Alice", SECRET), ("nobody", SECRET),
        ("by.proxy", ""), ("by.proxy", SECRET), ("alice", SECRET + "\0"), ("", ""),
    ):  # fmt: skip
        assert not users.verify(name, password), (name, password)


@pytest.mark.parametrize("password", ["", "short", "x" * 1_001])
def test_a_password_has_a_length(password: str) -> None:
    with pytest.raises(AccessFileError, match="characters"):
        hashed(password)


def test_a_change_by_another_process_is_seen_at_once(users: UsersFile) -> None:
    before = users.stamp("alice")
    other = UsersFile(users.path, BUILT_IN)
    with other.changing() as found:
        found["alice"] = replace(found["alice"], roles={EVERYWHERE: "viewer"})
    assert users.stamp("alice") not in ("", before)
    login = users.login("alice", proven_by=PASSWORD, face="page", address="")
    assert login is not None
    assert login.role_on("any") == VIEWER
    with other.changing() as found:
        del found["alice"]
    assert users.stamp("alice") == ""
    assert users.login("alice", proven_by=PASSWORD, face="page", address="") is None


def test_two_who_change_it_at_once_lose_nothing(users: UsersFile) -> None:
    def add(name: str) -> None:
        with UsersFile(users.path, BUILT_IN).changing() as found:
            found[name] = User(name=name, roles={EVERYWHERE: "viewer"})

    threads = [Thread(target=add, args=(f"user-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(users.users()) == 10


def test_an_error_midway_leaves_the_old_file(users: UsersFile) -> None:
    before = users.path.read_bytes()
    with suppress(ZeroDivisionError), users.changing() as found:
        found.clear()
        raise ZeroDivisionError
    full = OSError(28, "No space left on device")
    with patch("os.replace", side_effect=full), pytest.raises(AccessFileError, match="No space"):
        _remove_all(users)
    assert users.path.read_bytes() == before
    assert sorted(it.name for it in users.path.parent.iterdir()) == [
        ".users.json.lock", "users.json",
    ]  # fmt: skip


def _remove_all(users: UsersFile) -> None:
    with users.changing() as found:
        found.clear()


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "null", '{"format": 2, "users": {}}', '{"format": 1, "users": []}',
        '{"format": 1, "users": {"a": {"password": 1, "roles": {}}}}',
        '{"format": 1, "users": {"a": {"password": "", "roles": {"*": 7}}}}',
        '{"format": 1, "users": {"a\\nb": {"password": "", "roles": {}}}}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_a_file_that_is_none_lets_nobody_in(users: UsersFile, content: str) -> None:
    users.path.write_text(content)
    with pytest.raises(AccessFileError, match="cannot be used"):
        users.users()
    assert users.stamp("alice") == ""
    assert not users.verify("alice", SECRET)
    login = users.process_login()
    assert login is not None
    assert login.why_not("", "produce")


def test_an_unknown_role_has_no_rights_and_is_named(users: UsersFile) -> None:
    document = json.loads(users.path.read_text())
    document["users"]["alice"]["roles"] = {"*": "gone"}
    users.path.write_text(json.dumps(document))
    login = users.login("alice", proven_by=PASSWORD, face="page", address="")
    assert login is not None
    assert "gone (not declared" in login.why_not("prod", "pause", is_brake=True)


def test_a_process_has_the_role_of_its_os_user(users: UsersFile, tmp_path: Path) -> None:
    assert UsersFile(tmp_path / "none.json", BUILT_IN).process_login() is None
    login = users.process_login()
    assert login is not None
    assert login.role_on("prod") == ADMIN
    assert login.proven_by == OPERATING_SYSTEM
    with users.changing() as found:
        found[login.name] = User(name=login.name, roles={EVERYWHERE: "viewer"})
    login = users.process_login()
    assert login is not None
    assert login.role_on("prod") == VIEWER


def test_names_of_variables_prove_nothing(
    users: UsersFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(variable, "alice")
    login = users.process_login()
    assert login is not None
    assert login.name != "alice"


@pytest.mark.skipif(not os.geteuid(), reason="root reads everything")
def test_who_may_not_read_it_may_change_nothing(users: UsersFile) -> None:
    users.path.chmod(0)
    login = users.process_login()
    assert login is not None
    assert "Permission denied" in login.why_not("", "produce")
