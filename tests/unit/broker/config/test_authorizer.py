"""Properties of the authorizer: who may do everything, and what is refused and why."""

import pytest

from broker.config.authorizer import STANDARD, AuthorizerConfig
from broker.config.errors import ConfigError

GIVEN = {"authorizer.class.name": STANDARD, "super.users": "User:node; User:CN=a,O=b;"}


def test_super_users_are_principals_between_semicolons() -> None:
    found = AuthorizerConfig.from_properties(GIVEN)
    users = frozenset({"User:node", "User:CN=a,O=b"})
    assert found == AuthorizerConfig(super_users=users, allows_unlisted=False)
    allowing = GIVEN | {"allow.everyone.if.no.acl.found": "TRUE"}
    found = AuthorizerConfig.from_properties(allowing)
    assert found is not None
    assert found.allows_unlisted


def test_without_a_class_nobody_is_asked() -> None:
    assert AuthorizerConfig.from_properties({"authorizer.class.name": " "}) is None


@pytest.mark.parametrize(
    ("change", "story"),
    [
        ({"authorizer.class.name": "com.example.Own"}, STANDARD),
        ({"authorizer.class.name": ""}, "super.users is set"),
        ({"super.users": "node"}, "User:node"),
        ({"super.users": "User:"}, "no principal"),
        ({"allow.everyone.if.no.acl.found": "maybe"}, "neither true nor false"),
    ],
)
def test_what_cannot_be_kept_is_refused(change: dict[str, str], story: str) -> None:
    with pytest.raises(ConfigError, match=story):
        AuthorizerConfig.from_properties(GIVEN | change)
