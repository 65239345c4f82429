"""The collector's pure parts: what is known, what is due, what it weighs, what is missing."""

from kio.schema.errors import ErrorCode

from broker.metrics_schema import (
    NO_COMMIT,
    BrokerSample,
    CommitSample,
    GroupSample,
    ReplicaSample,
)
from broker.protocol import codec
from control.collector.background_reads import interval_ms
from control.collector.groups import ACTIVE_FOR_MS, IDLE_AGE_MS, GroupImages
from control.collector.image import BrokerInfo, BrokerLogs, ClusterImage, PartitionState
from control.collector.load import LoadMeter, interval_ms_for
from control.collector.report_writer import (
    BrokerReport,
    MissingRight,
    WatchReport,
    decode_report,
    encode_report,
)
from control.collector.rights import Gap, Gaps
from control.collector.rows import orphan_rows, round_rows
from control.collector.traffic import Traffic
from control.kafka.acl import NO_BITS, AclOperation, bits_of_topics, missing_rights, words_of
from control.kafka.ports import GroupDescription, GroupMember, ListedGroup
from control.model.ids import TopicPartition
from control.operations.catalogue import NEEDED_RIGHTS

ORDERS_0 = TopicPartition("orders", 0)


def _metadata(topics: dict[str, list[tuple[int, list[int]]]], brokers: tuple[int, ...]) -> object:
    """A Metadata answer: per topic the leader and replicas of each partition."""
    return codec.build_response(
        3,
        12,
        cluster_id="watched",
        controller_id=brokers[0],
        brokers=[{"node_id": b, "host": "h", "port": 9092, "rack": None} for b in brokers],
        topics=[
            {
                "name": name,
                "error_code": 0,
                "partitions": [
                    {
                        "partition_index": index,
                        "error_code": 0,
                        "leader_id": leader,
                        "leader_epoch": 1,
                        "replica_nodes": replicas,
                        "isr_nodes": replicas,
                    }
                    for index, (leader, replicas) in enumerate(partitions)
                ],
            }
            for name, partitions in topics.items()
        ],
    )


def test_metadata_is_taken_by_difference() -> None:
    image = ClusterImage()
    topics = {"orders": [(1, [1, 2]), (2, [2, 1])], "old": [(1, [1])]}
    image.take_metadata(_metadata(topics, (1, 2)), 100)
    version = image.version
    image.take_offsets({ORDERS_0: 7}, 150)
    image.take_metadata(_metadata(topics, (1, 2)), 200)
    assert image.version == version, "nothing changed"
    moved = {"orders": [(2, [1, 2]), (2, [2, 1])]}
    image.take_metadata(_metadata(moved, (1, 2)), 300)
    assert image.version > version
    assert {state.key for state in image.led_by(2)} == {ORDERS_0, TopicPartition("orders", 1)}
    assert image.partitions[ORDERS_0].high_watermark == 7
    assert [key.topic for key in image.partitions] == ["orders", "orders"]


def test_a_broker_that_holds_replicas_is_away_rather_than_gone() -> None:
    image = ClusterImage()
    image.take_metadata(_metadata({"orders": [(1, [1, 2])]}, (1, 2)), 100)
    image.take_metadata(_metadata({"orders": [(1, [1, 2])]}, (1,)), 200)
    assert {b.id: b.is_fenced for b in image.brokers.values()} == {1: False, 2: True}
    image.take_metadata(_metadata({"orders": [(1, [1])]}, (1,)), 300)
    image.take_metadata(_metadata({"orders": [(1, [1])]}, (1,)), 400)
    assert list(image.brokers) == [1]


def test_a_broker_that_lacks_our_listener_runs_and_leads() -> None:
    """Metadata leaves it out, and the leader that it is."""
    alone = {"partition_index": 0, "leader_epoch": 1, "replica_nodes": [3], "isr_nodes": [3]}
    shared = {**alone, "partition_index": 1, "replica_nodes": [1, 4], "isr_nodes": [1, 4]}
    unheard = {"error_code": ErrorCode.listener_not_found.value, "leader_id": -1}
    partitions = [{**alone, **unheard}, {**shared, "error_code": 0, "leader_id": 1}]
    answer = codec.build_response(
        3,
        12,
        cluster_id="watched",
        controller_id=1,
        brokers=[{"node_id": 1, "host": "h", "port": 9092, "rack": None}],
        topics=[{"name": "orders", "error_code": 0, "partitions": partitions}],
    )
    image = ClusterImage()
    for read_ms in (100, 200):
        image.take_metadata(answer, read_ms)
        image.take_registered([BrokerInfo(id=1, host="h", port=9092, rack=None)])
        told = {it.id: (it.has_address, it.is_fenced) for it in image.brokers.values()}
        assert told == {1: (True, False), 3: (False, False), 4: (False, False)}
        assert image.partitions[ORDERS_0].leader == 3
    gone = _metadata({"orders": [(1, [1])]}, (1,))
    image.take_metadata(gone, 300)
    image.take_registered([BrokerInfo(id=1, host="h", port=9092, rack=None)])
    assert list(image.brokers) == [1]


def test_partitions_that_nobody_can_tell_of_are_told_from_metadata() -> None:
    image = ClusterImage()
    topics = {"orders": [(-1, [2]), (1, [1, 2])], "new": [(3, [3])]}
    image.take_metadata(_metadata(topics, (1, 3)), 100)
    rows = orphan_rows(image, frozenset({1, 3}))
    assert [(it.topic, it.partition, it.leader, it.read_ms) for it in rows] == [
        ("orders", 0, -1, 100)
    ]
    rows = orphan_rows(image, frozenset({1}))
    assert {(it.topic, it.leader) for it in rows} == {("orders", -1), ("new", 3)}, "3 is cut off"
    image.take_metadata(_metadata({"new": [(3, [3])]}, (1, 3)), 200)
    assert orphan_rows(image, frozenset({1, 3})) == []


def test_a_deleted_topic_is_not_taken_for_a_hidden_one() -> None:
    image = ClusterImage()
    image.take_metadata(_metadata({"orders": [(1, [1])], "old": [(1, [1])]}, (1,)), 100)
    sizes = {ORDERS_0: 1, TopicPartition("old", 0): 1}
    image.logs[1] = BrokerLogs(sizes=sizes, read_ms=150)
    image.take_metadata(_metadata({"orders": [(1, [1])]}, (1,)), 200)
    assert image.hidden_topics() == set(), "deleted since the log directories were read"
    image.logs[1] = BrokerLogs(sizes=sizes, read_ms=250)
    assert image.hidden_topics() == {"old"}, "still held after it was missed"
    image.logs[1] = BrokerLogs(sizes={ORDERS_0: 1}, read_ms=350)
    assert image.hidden_topics() == set()


def test_rows_tell_only_what_the_protocol_tells() -> None:
    image = ClusterImage()
    image.take_metadata(_metadata({"orders": [(1, [1, 2]), (1, [1, 2])]}, (1, 2)), 100)
    image.take_offsets({ORDERS_0: 7}, 150)
    image.take_starts({ORDERS_0: 3})
    leader = list(round_rows(image, 1, GroupImages(), round_ms=90))
    brokers = [row for row in leader if isinstance(row, BrokerSample)]
    assert [row.id for row in brokers] == [1, 2]
    (replica,) = [row for row in leader if isinstance(row, ReplicaSample)]
    assert (replica.partition, replica.read_ms) == (0, 150), "the other one was never read"
    assert (replica.log_start_offset, replica.high_watermark) == (3, 7)
    assert (replica.size_bytes, replica.segments, replica.min_isr) == (None, None, None)
    later = list(round_rows(image, 2, GroupImages(), round_ms=120))
    assert all(isinstance(row, ReplicaSample) for row in later), "brokers were read before"
    followers = [row for row in later if isinstance(row, ReplicaSample)]
    assert {row.high_watermark for row in followers} == {None}
    assert {row.read_ms for row in followers} == {100}


def _listed(*names: str, state: str = "Stable") -> list[ListedGroup]:
    return [
        ListedGroup(group_id=n, state=state, protocol_type="consumer", group_type="Classic")
        for n in names
    ]


def test_groups_are_read_by_activity_and_all_within_a_bounded_age() -> None:
    groups = GroupImages()
    groups.take_listed(_listed("busy", "idle", state="Empty"), 1_000)
    assert set(groups.due_offsets(1_000)) == {"busy", "idle"}
    for name in ("busy", "idle"):
        groups.take_offsets(name, {ORDERS_0: 1}, 1_000)
    later = 1_000 + ACTIVE_FOR_MS
    groups.take_offsets("busy", {ORDERS_0: 2}, later)
    groups.take_offsets("idle", {ORDERS_0: 1}, later)
    assert groups.due_offsets(later + 100) == ["busy"]
    assert set(groups.due_offsets(later + IDLE_AGE_MS)) == {"busy", "idle"}
    groups.take_listed(_listed("idle", state="Stable"), later + 200)
    assert groups.due_offsets(later + 200) == ["idle"], "its state changed; busy has gone"


def test_members_and_owners_come_from_the_description() -> None:
    groups = GroupImages()
    groups.take_listed(_listed("app"), 91_000)
    assert groups.due_descriptions(91_000, kind="classic") == ["app"]
    member = GroupMember(member_id="m1", client_id="c", client_host="h", assignment=(ORDERS_0,))
    found = GroupDescription(
        group_id="app",
        state="Stable",
        protocol="range",
        members=(member,),
        group_type="classic",
    )
    groups.take_description(found, 91_100)
    groups.take_offsets("app", {ORDERS_0: 5, TopicPartition("orders", 1): 6}, 91_200)
    assert groups.due_descriptions(91_200, kind="classic") == []
    group, *commits = groups.rows()
    assert isinstance(group, GroupSample)
    assert (group.members, group.protocol, group.read_ms) == (1, "range", 91_000)
    owners = {c.partition: c.member_id for c in commits if isinstance(c, CommitSample)}
    assert owners == {0: "m1", 1: None}
    groups.take_denied("app", 91_300)
    assert [type(row) for row in groups.rows()] == [GroupSample], "what we may not read is n/a"
    assert groups.denied() == ["app"]


def test_what_a_member_owns_without_a_commit_is_told_once_its_offsets_were_read() -> None:
    groups = GroupImages()
    groups.take_listed(_listed("app"), 91_000)
    owned = (ORDERS_0, TopicPartition("orders", 1))
    member = GroupMember(member_id="m1", client_id="c", client_host="h", assignment=owned)
    found = GroupDescription(
        group_id="app",
        state="Stable",
        protocol="range",
        members=(member,),
        group_type="classic",
    )
    groups.take_description(found, 91_100)
    assert [type(row) for row in groups.rows()] == [GroupSample], "nothing is known of commits"
    groups.take_offsets("app", {ORDERS_0: 5}, 91_200)
    told = [row for row in groups.rows() if isinstance(row, CommitSample)]
    assert [(it.partition, it.committed_offset, it.member_id, it.read_ms) for it in told] == [
        (0, 5, "m1", 91_200),
        (1, NO_COMMIT, "m1", 91_200),
    ]
    assert groups.commits == 3
    left = GroupDescription(
        group_id="app", state="Empty", protocol="", members=(), group_type="classic"
    )
    groups.take_description(left, 91_300)
    told = [row for row in groups.rows() if isinstance(row, CommitSample)]
    assert [(it.partition, it.member_id) for it in told] == [(0, None)]


def test_readers_of_a_partition_that_a_share_group_shares_are_counted() -> None:
    groups = GroupImages()
    listed = ListedGroup(group_id="s", state="Stable", protocol_type="share", group_type="Share")
    groups.take_listed([listed], 91_000)
    assert groups.due_offsets(91_000) == [], "it has a request of its own"
    assert groups.due_offsets(91_000, of_share=True) == ["s"]
    shared, alone = ORDERS_0, TopicPartition("orders", 1)
    members = tuple(
        GroupMember(member_id=name, client_id="c", client_host="h", assignment=owned)
        for name, owned in (("m1", (shared, alone)), ("m2", (shared,)))
    )
    found = GroupDescription(
        group_id="s",
        state="Stable",
        protocol="simple",
        members=members,
        group_type="share",
        group_epoch=3,
        assignment_epoch=2,
    )
    groups.take_description(found, 91_100)
    groups.take_offsets("s", {shared: 5}, 91_200, {shared: 7})
    group, *starts = groups.rows()
    assert isinstance(group, GroupSample)
    assert (group.group_type, group.group_epoch, group.assignment_epoch) == ("share", 3, 2)
    told = [it for it in starts if isinstance(it, CommitSample)]
    assert [(it.partition, it.committed_offset, it.member_id, it.told_lag) for it in told] == [
        (0, 5, "2 members", 7),
        (1, NO_COMMIT, "m1", None),
    ]


def test_bytes_in_are_records_in_times_what_a_record_weighs() -> None:
    traffic = Traffic()
    state = PartitionState(key=ORDERS_0, leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
    state.log_start_offset, state.high_watermark = 0, 1_000
    traffic.advance(state)
    assert state.bytes_in is None, "no size was read yet"
    traffic.take_size(state, 100_000)
    traffic.advance(state)
    assert state.bytes_in == 0
    state.high_watermark = 1_010
    traffic.advance(state)
    assert state.bytes_in == 1_000, "100 bytes a record over the whole log"
    traffic.take_size(state, 102_000)
    state.high_watermark = 1_020
    traffic.advance(state)
    assert state.bytes_in == 3_000, "200 bytes a record since the last size"
    traffic.take_size(state, 50_000)
    state.high_watermark = 1_030
    traffic.advance(state)
    assert state.bytes_in == 5_000, "retention took half of the log, not of the traffic"
    state.high_watermark = 2
    traffic.advance(state)
    assert state.bytes_in is None, "the topic was made anew"


def test_load_is_counted_and_bounds_the_distance_of_turns() -> None:
    now_s = [0.0]
    meter = LoadMeter(lambda: now_s[0])
    for _ in range(20):
        now_s[0] += 0.5
        meter.count(rows=100, sent_bytes=10, received_bytes=1_000)
    load = meter.load()
    assert (load.requests_per_s, load.rows_per_s) == (2.0, 200.0)
    assert (load.sent_bytes_per_s, load.received_bytes_per_s) == (20.0, 2_000.0)
    now_s[0] += 60
    assert meter.load().requests_per_s == 0
    assert interval_ms_for(1_000, rows=500, rows_per_s_max=20_000) == 1_000
    assert interval_ms_for(1_000, rows=50_000, rows_per_s_max=20_000) == 2_500


def test_rights_of_operations_are_read_from_the_brokers_bits() -> None:
    everything = sum(1 << operation for operation in AclOperation)
    kinds = ("cluster", "topic", "group")
    assert missing_rights(dict.fromkeys(kinds, everything), NEEDED_RIGHTS) == {}
    silent = dict.fromkeys(kinds, NO_BITS)
    assert missing_rights(silent, NEEDED_RIGHTS) == {}, "a broker that does not tell denies nothing"
    describe = 1 << AclOperation.DESCRIBE
    read = describe | 1 << AclOperation.READ
    bits = {"cluster": describe, "topic": read, "group": describe}
    denied = missing_rights(bits, NEEDED_RIGHTS)
    assert words_of(denied["elect"]) == "ALTER on the cluster"
    assert words_of(denied["reset_offsets"]) == "READ on groups"
    assert "browse" not in denied


def test_groups_without_members_are_asked_by_turns_what_we_may_do() -> None:
    groups = GroupImages()
    states = {"a": "Empty", "b": "Stable", "c": "Empty"}
    groups.take_listed(
        (
            ListedGroup(group_id=name, state=state, protocol_type="consumer", group_type="Classic")
            for name, state in states.items()
        ),
        now_ms=1,
    )
    assert groups.due_rights(kind="consumer", most=9) == []
    assert groups.due_rights(kind="classic", most=1) == ["a"]
    assert groups.bits == NO_BITS
    read, write = 1 << AclOperation.READ, 1 << AclOperation.WRITE
    groups.take_rights("a", read | write, now_ms=2)
    groups.take_rights("b", read, now_ms=2)
    assert groups.due_rights(kind="classic", most=1) == ["c"]
    assert groups.bits == read, "what every group allows"


def test_what_every_topic_allows_is_judged_and_internal_ones_do_not_count() -> None:
    def topics(**bits: int) -> tuple[dict[str, object], ...]:
        return tuple(
            {"name": name, "topic_authorized_operations": own, "error_code": 0}
            for name, own in bits.items()
        )

    def common(**bits: int) -> int:
        message = codec.build_response(3, 12, brokers=(), topics=topics(**bits))
        return bits_of_topics(message.topics)

    read, write = 1 << AclOperation.READ, 1 << AclOperation.WRITE
    assert common(a=read | write, b=read, __consumer_offsets=0) == read
    assert common(a=NO_BITS, b=write) == write
    assert common(a=NO_BITS) == NO_BITS
    assert common() == NO_BITS


def test_intervals_grow_with_what_there_is_to_read_within_bounds() -> None:
    assert interval_ms(600, 500, most=60_000) == 1_200
    assert interval_ms(10_000, 500, most=60_000) == 20_000
    assert interval_ms(10_000_000, 500, most=60_000) == 60_000
    assert interval_ms(0, 2, least=30_000) == 30_000


def test_gaps_open_with_names_and_close() -> None:
    gaps = Gaps(lambda: 5)
    gaps.judge(Gap.TOPICS, [f"t{number}" for number in range(8)], "hidden topics")
    (gap,) = gaps.all()
    assert "8 hidden topics (t0, t1, t2, t3, t4 and 3 more)" in gap.text
    assert gaps.is_partial
    gaps.judge(Gap.TOPICS, [], "hidden topics")
    gaps.open(Gap.TOPIC_CONFIGS)
    assert not gaps.is_partial, "n/a figures do not hide topics"


def test_reports_survive_the_way_over_the_bus() -> None:
    right = MissingRight(api="a", operation="o", resource="r", text="t", acl="c", since_ms=1)
    broker = BrokerReport(
        broker=1, requests_per_s=1.5, rows_per_s=2, sent_bytes_per_s=3, received_bytes_per_s=4
    )
    report = WatchReport(
        cluster="c",
        bootstrap="b:1",
        at_ms=1,
        interval_ms=1_000,
        is_partial=True,
        brokers=(broker,),
        missing_rights=(right,),
        denied_operations={"elect": "ALTER on the cluster"},
    )
    assert decode_report(encode_report(report)) == report
    newer = encode_report(report).replace(b'{"cluster"', b'{"new":1,"cluster"')
    assert decode_report(newer) == report
