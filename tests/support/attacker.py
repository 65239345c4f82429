"""Somebody who asks a page with users as no browser would: raw requests, odd headers, tokens."""

import http.client
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from control.access.roles import BUILT_IN, EVERYWHERE
from partiscope.access.tokens_file import TokensFile, made, now_ms
from partiscope.access.users_file import User, UsersFile, hashed
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.store_builder import StoreBuilder, SyntheticSizes

SECRET: Final = "correct horse battery"
PASSWORD_HASH: Final = hashed(SECRET)
DAY_MS: Final = 86_400_000


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Status, headers and text."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def cookie(self) -> str:
        """``name=token`` that it sets."""
        return self.headers.get("set-cookie", "").partition(";")[0]


class Attacker:
    """Asks one page, as anybody may."""

    def __init__(self, server: PageServer, users: UsersFile) -> None:
        self.server, self.users = server, users
        self.tokens = TokensFile(users.path.with_name("tokens.json"), BUILT_IN)
        self.host = f"127.0.0.1:{server.port}"
        self.origin = f"http://{self.host}"

    def ask(
        self, path: str, *, method: str = "GET", body: str | bytes | None = None, **headers: str
    ) -> Answer:
        """One request, of a connection of its own."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection(self.host, timeout=WAIT_S)) as connection:
            connection.request(method, path, body, named)
            found = connection.getresponse()
            text = found.read().decode(errors="replace")
            told = {name.lower(): value for name, value in found.getheaders()}
            return Answer(status=found.status, headers=told, text=text)

    def log_in(self, name: str, password: str = SECRET, **headers: str) -> Answer:
        """By the form; ``next`` in ``headers`` is a field of it."""
        form = {"name": name, "password": password, "next": headers.pop("next", "/")}
        given = {"origin": self.origin, "content_type": "application/x-www-form-urlencoded"}
        return self.ask("/login", method="POST", body=urlencode(form), **given | headers)

    def cookie_of(self, name: str) -> str:
        """A session of its own."""
        answer = self.log_in(name)
        assert answer.status == 303, answer
        return answer.cookie

    def add(self, name: str, role: str = "viewer") -> str:
        """A user of this test alone."""
        with self.users.changing() as found:
            found[name] = User(name=name, password=PASSWORD_HASH, roles={EVERYWHERE: role})
        return name

    def token(self, name: str, role: str = "viewer", *, lasts_ms: int = DAY_MS) -> str:
        """A token of this test alone; its header is ``bearer(token)``."""
        token, secret = made(name, {EVERYWHERE: role}, lasts_ms=lasts_ms, at_ms=now_ms())
        with self.tokens.changing() as found:
            found[name] = token
        return secret


def bearer(secret: str) -> dict[str, str]:
    """The header by which a token is sent."""
    return {"authorization": f"Bearer {secret}"}


@contextmanager
def page_with_users(folder: Path, *flags: str) -> Iterator[Attacker]:
    """A page of a store; its users are alice (admin) and victor (viewer)."""
    store = folder / "store"
    StoreBuilder(store).write_synthetic(
        SyntheticSizes(topics=2, partitions=2, groups=1), history_s=5
    )
    users = UsersFile(folder / "data" / "users.json", BUILT_IN)
    with users.changing() as found:
        found["alice"] = User(name="alice", password=PASSWORD_HASH, roles={EVERYWHERE: "admin"})
        found["victor"] = User(name="victor", password=PASSWORD_HASH, roles={EVERYWHERE: "viewer"})
    with PageServer(store, *flags) as server:
        yield Attacker(server, users)
