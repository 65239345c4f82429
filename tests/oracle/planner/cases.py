"""Random clusters and requests, as plain data: brokers dead, cordoned or without a rack; partitions
slow, leaderless, on the move or of unknown size; mixed replication factors; exclusions."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

GOALS = ("balance", "minimal", "racks", "leaders", "topics", "traffic", "relieve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A topology file and the fields of a request to the planner."""

    topology: dict[str, Any]
    request: dict[str, Any] = field(default_factory=dict)


def case_of(seed: int) -> Case:
    """The same for the same seed."""
    dice = Random(seed)
    brokers = _brokers(dice)
    topics = ["t", "u", "__offsets"][: dice.randint(1, 3)]
    partitions = [
        _partition(dice, brokers, topic, number)
        for topic in topics
        for number in range(dice.randint(1, 5))
    ]
    topology = {"brokers": brokers, "partitions": partitions}
    return Case(topology=topology, request=_request(dice, topology))


def _brokers(dice: Random) -> list[dict[str, Any]]:
    has_racks, has_disks = dice.random() < 0.7, dice.random() < 0.3
    is_sound = dice.random() < 0.3
    brokers = []
    for id_ in range(1, dice.randint(3, 9) + 1):
        broker: dict[str, Any] = {"id": id_}
        if has_racks and (is_sound or dice.random() < 0.85):
            broker["rack"] = "abc"[id_ % 3]
        if has_disks:
            broker["capacity"] = dice.choice((400, 900, 5000))
        if not is_sound and dice.random() < 0.15:
            broker["down"] = True
        elif not is_sound and dice.random() < 0.05:
            broker["cordoned"] = True
        brokers.append(broker)
    return brokers


def _partition(
    dice: Random, brokers: list[dict[str, Any]], topic: str, number: int
) -> dict[str, Any]:
    ids = [broker["id"] for broker in brokers]
    live = {broker["id"] for broker in brokers if not broker.get("down")}
    replicas = dice.sample(ids, min(len(ids), dice.choice((1, 2, 2, 3, 3, 3, 4))))
    partition: dict[str, Any] = {"topic": topic, "partition": number, "replicas": replicas}
    if dice.random() < 0.9:
        partition["size"] = dice.choice((0, 1, 20, 100, 300))
    if dice.random() < 0.3:
        partition["bytes_in"], partition["bytes_out"] = dice.randint(0, 99), dice.randint(0, 99)
    slow = dice.random() < 0.3
    in_sync = [id_ for id_ in replicas if id_ in live and not (slow and dice.random() < 0.5)]
    if not in_sync:
        # The last one in sync died, or nothing is in sync any more.
        partition["leaderless"] = True
        partition["isr"] = [id_ for id_ in replicas if id_ not in live][:1]
        return partition
    if dice.random() < 0.8:
        partition["isr"], partition["leader"] = in_sync, dice.choice(in_sync)
    if dice.random() < 0.3:
        partition["min_isr"] = dice.randint(1, 2)
    if dice.random() < 0.05:
        partition["reassigning"] = True
    return partition


def _request(dice: Random, topology: dict[str, Any]) -> dict[str, Any]:
    ids = [broker["id"] for broker in topology["brokers"]]
    names = [f"{p['topic']}-{p['partition']}" for p in topology["partitions"]]
    fit = [b["id"] for b in topology["brokers"] if not b.get("down") and not b.get("cordoned")]
    most = dice.choice((len(fit), len(fit), 4))
    dice.shuffle(ids)
    asked: dict[str, Any] = {"goal": dice.choice(GOALS), "alternatives": dice.choice((1, 1, 3))}
    if dice.random() < 0.4:
        asked |= {
            "goal": "replication",
            "replication_factor": dice.randint(1, max(1, min(4, most))),
        }
    if asked["goal"] == "relieve":
        asked["relieve_brokers"] = (ids[0],)
    if asked["goal"] != "leaders" and dice.random() < 0.35:
        asked["remove_brokers"] = tuple(ids[-dice.randint(1, 2) :])
    if dice.random() < 0.25:
        asked["exclude_brokers"] = (ids[1],)
    if dice.random() < 0.2 and any(p["topic"] == "u" for p in topology["partitions"]):
        asked["exclude_topics"] = ("u",)
    if dice.random() < 0.2:
        asked["keep_partitions"] = (dice.choice(names),)
    return asked
