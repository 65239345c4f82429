"""Who may do what by access control entries, against an oracle that looks at every entry."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from broker.metadata.acls import (
    Acl,
    AclFilter,
    AclIndex,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
)
from tests.support.cases import examples

KINDS = (ResourceKind.TOPIC, ResourceKind.GROUP)
NAMES = ("a", "ab", "abc", "b", "*")
USERS = ("User:alice", "User:bob")
HOSTS = ("10.0.0.1", "10.0.0.2")
OPERATIONS = (
    Operation.READ,
    Operation.WRITE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)

ACLS = st.lists(
    st.builds(
        Acl,
        kind=st.sampled_from(KINDS),
        name=st.sampled_from(NAMES),
        pattern=st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
        principal=st.sampled_from((*USERS, "User:*")),
        host=st.sampled_from((*HOSTS, "*")),
        operation=st.sampled_from((*OPERATIONS, Operation.ALL)),
        permission=st.sampled_from((Permission.ALLOW, Permission.DENY)),
    ),
    max_size=8,
)


def indexed(acls: list[Acl]) -> AclIndex:
    index = AclIndex()
    index.follow({UUID(int=number): acl for number, acl in enumerate(acls)})
    return index


def means(acl: Acl, name: str) -> bool:
    if acl.pattern is PatternType.PREFIXED:
        return name.startswith(acl.name)
    return acl.name in (name, "*")


def is_about(acl: Acl, user: str, host: str) -> bool:
    return acl.principal in (user, "User:*") and acl.host in (host, "*")


IMPLYING = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def slowly(
    acls: list[Acl], user: str, host: str, operation: Operation, kind: ResourceKind, name: str
) -> bool | None:
    here = [it for it in acls if it.kind is kind and means(it, name)]
    mine = [it for it in here if is_about(it, user, host)]
    direct = {operation, Operation.ALL}
    if any(it.permission is Permission.DENY and it.operation in direct for it in mine):
        return False
    granting = direct | IMPLYING.get(operation, set())
    if any(it.permission is Permission.ALLOW and it.operation in granting for it in mine):
        return True
    return False if here else None


@examples(500)
@given(
    acls=ACLS,
    user=st.sampled_from(USERS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from(OPERATIONS),
    kind=st.sampled_from(KINDS),
    name=st.sampled_from((*NAMES, "abcd", "c")),
)
def test_the_index_decides_as_every_entry_together(
    acls: list[Acl],
    user: str,
    host: str,
    operation: Operation,
    kind: ResourceKind,
    name: str,
) -> None:
    verdict = indexed(acls).verdict(user, host, operation, kind, name)
    assert verdict is slowly(acls, user, host, operation, kind, name)


@examples(200)
@given(
    steps=st.lists(
        st.dictionaries(st.integers(0, 9), ACLS.map(lambda it: it[:1])), min_size=1, max_size=6
    ),
    user=st.sampled_from(USERS),
    operation=st.sampled_from(OPERATIONS),
    kind=st.sampled_from(KINDS),
)
def test_an_index_that_follows_changes_is_as_one_made_anew(
    steps: list[dict[int, list[Acl]]], user: str, operation: Operation, kind: ResourceKind
) -> None:
    index, acls, host = AclIndex(), dict[UUID, Acl](), HOSTS[0]
    for step in steps:
        acls = dict(acls)
        for number, entries in step.items():
            acls.pop(UUID(int=number), None)
            acls |= {UUID(int=number): it for it in entries}
        index.follow(acls)
        fresh = list(acls.values())
        for name in (*NAMES, "abcd", "c"):
            expected = slowly(fresh, user, host, operation, kind, name)
            assert index.verdict(user, host, operation, kind, name) is expected
        some = indexed(fresh).allows_some(user, host, operation, kind)
        assert index.allows_some(user, host, operation, kind) is some
    assert not index.follow(acls)
    assert index.follow({})
    assert index.verdict(user, host, operation, kind, "a") is None


@examples(500)
@given(acls=ACLS, user=st.sampled_from(USERS), host=st.sampled_from(HOSTS))
def test_some_resource_is_writable_where_a_name_can_be_found(
    acls: list[Acl], user: str, host: str
) -> None:
    """Names long enough to lie behind no prefix but those of the entries themselves."""
    kind, right = ResourceKind.TOPIC, Operation.WRITE
    candidates = [*NAMES[:-1], "zzz", *(f"{it}~" for it in NAMES[:-1])]
    is_found = any(slowly(acls, user, host, right, kind, it) for it in candidates)
    some = indexed(acls).allows_some(user, host, right, kind)
    if is_found:
        assert some or any(it.permission is Permission.DENY for it in acls)
    if some and not any(it.permission is Permission.DENY for it in acls):
        assert is_found


def acl(name: str = "a", pattern: PatternType = PatternType.LITERAL) -> Acl:
    return Acl(
        kind=ResourceKind.TOPIC,
        name=name,
        pattern=pattern,
        principal="User:alice",
        host="*",
        operation=Operation.READ,
        permission=Permission.ALLOW,
    )


def wanted(
    name: str | None = None, pattern: PatternType = PatternType.ANY, host: str | None = None
) -> AclFilter:
    return AclFilter(
        kind=ResourceKind.ANY,
        name=name,
        pattern=pattern,
        principal=None,
        host=host,
        operation=Operation.ANY,
        permission=Permission.ANY,
    )


def test_a_filter_means_entries_by_their_pattern() -> None:
    literal, prefixed, star = acl(), acl("ab", PatternType.PREFIXED), acl("*")
    means_these = {
        wanted(): {literal, prefixed, star},
        wanted("a", PatternType.LITERAL): {literal},
        wanted("abc", PatternType.MATCH): {prefixed, star},
        wanted("a", PatternType.MATCH): {literal, star},
        wanted("ab", PatternType.PREFIXED): {prefixed},
        wanted("ab", PatternType.LITERAL): set(),
        wanted("*", PatternType.LITERAL): {star},
        wanted(None, PatternType.PREFIXED): {prefixed},
        wanted(host="10.0.0.1"): set(),
    }
    for asked, expected in means_these.items():
        found = {it for it in (literal, prefixed, star) if asked.matches(it)}
        assert found == expected, asked


def test_a_denial_of_a_prefix_covers_what_is_allowed_below_it() -> None:
    denied = Acl(
        kind=ResourceKind.TOPIC, name="a", pattern=PatternType.PREFIXED, principal="User:*",
        host="*", operation=Operation.READ, permission=Permission.DENY,
    )  # fmt: skip
    index = indexed([acl("ab"), denied])
    assert not index.allows_some("User:alice", "h", Operation.READ, ResourceKind.TOPIC)
    index = indexed([acl("b"), denied])
    assert index.allows_some("User:alice", "h", Operation.READ, ResourceKind.TOPIC)
    assert not index.allows_some("User:alice", "h", Operation.DESCRIBE, ResourceKind.TOPIC)
