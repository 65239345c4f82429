"""Random clusters where all brokers run and all replicas are in sync, and requests, as plain data.
A plan that was applied there is all that can be done."""

from random import Random
from typing import Any

from tests.oracle.planner.cases import Case

GOALS = ("balance", "minimal", "racks", "leaders", "topics", "traffic", "relieve", "replication")
SIZES = ((100,), (0, 1, 20, 100, 300), (90, 100, 110), (1, 1000))


def steady_case(seed: int) -> Case:
    """The same for the same seed."""
    dice = Random(seed)
    brokers = _brokers(dice)
    ids = [broker["id"] for broker in brokers]
    old = ids[: max(1, len(ids) - dice.choice((0, 0, 1, 2)))]
    sizes, has_rates = dice.choice(SIZES), dice.random() < 0.4
    partitions = []
    for topic in "tuv"[: dice.randint(1, 3)]:
        usual = dice.choice((1, 2, 2, 3, 3))
        for number in range(dice.randint(1, 8)):
            width = min(len(old), usual if dice.random() < 0.8 else dice.choice((1, 2, 3, 4)))
            partition = _partition(dice, dice.sample(old, width), dice.choice(sizes))
            if has_rates:
                partition["bytes_in"] = dice.randint(0, 99)
                partition["bytes_out"] = dice.randint(0, 99)
            partitions.append({"topic": topic, "partition": number, **partition})
    topology = {"brokers": brokers, "partitions": partitions}
    return Case(topology=topology, request=_request(dice, ids))


def _brokers(dice: Random) -> list[dict[str, Any]]:
    number = dice.randint(2, 8)
    racks, has_disks = dice.choice(("none", "even", "uneven", "some")), dice.random() < 0.25
    brokers = []
    for id_ in range(1, number + 1):
        broker: dict[str, Any] = {"id": id_}
        if racks == "uneven":
            broker["rack"] = dice.choice("aaabbc")
        elif racks == "even" or (racks == "some" and dice.random() < 0.7):
            broker["rack"] = "abc"[id_ % 3]
        if has_disks:
            broker["capacity"] = dice.choice((600, 1500, 5000))
        brokers.append(broker)
    return brokers


def _partition(dice: Random, replicas: list[int], size: int) -> dict[str, Any]:
    partition = {"replicas": replicas, "size": size, "isr": replicas, "leader": replicas[0]}
    for key in ("isr", "leader", "size"):
        if dice.random() < 0.05:
            del partition[key]
    return partition


def _request(dice: Random, ids: list[int]) -> dict[str, Any]:
    goal, number = dice.choice(GOALS), len(ids)
    asked: dict[str, Any] = {"goal": goal, "alternatives": 3}
    if goal == "replication":
        asked["replication_factor"] = dice.randint(1, min(4, number))
    if goal == "relieve":
        relieved = dice.choice((1, 1, 2)) if number > 2 else 1
        asked["relieve_brokers"] = tuple(dice.sample(ids, relieved))
    if goal != "leaders" and dice.random() < 0.3 and number > 2:
        removed = dice.choice((1, 1, 2)) if number > 3 else 1
        asked["remove_brokers"] = tuple(dice.sample(ids, removed))
    if dice.random() < 0.2:
        asked["exclude_brokers"] = (dice.choice(ids),)
    if dice.random() < 0.15:
        asked["topics"] = ("t",)
    if dice.random() < 0.15:
        asked["keep_partitions"] = ("t-0",)
    return asked
