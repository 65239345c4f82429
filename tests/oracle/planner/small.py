"""Clusters so small that all their assignments can be tried, and requests, as plain data."""

from random import Random
from typing import Any

from tests.oracle.planner.cases import Case

GOALS = ("balance", "balance", "minimal", "racks", "topics", "traffic", "relieve", "replication")
SIZES = ((100,), (1, 20, 100, 300), (90, 100, 110), (1, 1000), (0, 5, 7))


def small_case(seed: int) -> Case:
    """The same for the same seed."""
    dice = Random(seed)
    brokers = _brokers(dice)
    ids = [broker["id"] for broker in brokers]
    old = ids[: max(1, len(ids) - dice.choice((0, 0, 0, 1)))]
    sizes, has_rates = dice.choice(SIZES), dice.random() < 0.2
    usual = dice.choice((1, 2, 2, 3))
    partitions: list[dict[str, Any]] = []
    for number in range(dice.randint(2, 5 if len(ids) < 4 else 4)):
        width = min(len(old), usual if dice.random() < 0.8 else dice.choice((1, 2, 3)))
        replicas = dice.sample(old, width)
        partition = {"topic": dice.choice("tu"), "partition": number, "replicas": replicas}
        partition |= {"size": dice.choice(sizes), "isr": replicas, "leader": replicas[0]}
        if has_rates:
            partition |= {"bytes_in": dice.randint(0, 9), "bytes_out": dice.randint(0, 9)}
        partitions.append(partition)
    topology = {"brokers": brokers, "partitions": partitions}
    return Case(topology=topology, request=_request(dice, ids, partitions[0]["topic"]))


def _brokers(dice: Random) -> list[dict[str, Any]]:
    number = dice.randint(2, 4)
    racks = dice.choice(("none", "even", "uneven", "uneven", "some"))
    has_disks = dice.random() < 0.25
    brokers = []
    for id_ in range(1, number + 1):
        broker: dict[str, Any] = {"id": id_}
        if racks == "uneven":
            broker["rack"] = dice.choice("aabc")
        elif racks == "even" or (racks == "some" and dice.random() < 0.7):
            broker["rack"] = "ab"[id_ % 2]
        if has_disks:
            broker["capacity"] = dice.choice((150, 300, 1000))
        brokers.append(broker)
    return brokers


def _request(dice: Random, ids: list[int], topic: str) -> dict[str, Any]:
    goal = dice.choice(GOALS)
    asked: dict[str, Any] = {"goal": goal, "alternatives": 3}
    if goal == "replication":
        asked["replication_factor"] = dice.randint(1, min(3, len(ids)))
    if goal == "relieve":
        asked["relieve_brokers"] = (dice.choice(ids),)
    if dice.random() < 0.3 and len(ids) > 2:
        asked["remove_brokers"] = (dice.choice(ids),)
    if dice.random() < 0.2:
        asked["exclude_brokers"] = (dice.choice(ids),)
    if dice.random() < 0.15:
        asked["topics"] = (topic,)
    if dice.random() < 0.15:
        asked["keep_partitions"] = (f"{topic}-0",)
    return asked


def hindered_case(seed: int) -> Case:
    """One of them with a broker that is dead or cordoned, or a partition under way."""
    case, dice = small_case(seed), Random(-seed - 1)
    brokers, partitions = case.topology["brokers"], case.topology["partitions"]
    how = dice.choice(("down", "down", "cordoned", "reassigning"))
    if how == "reassigning":
        dice.choice(partitions)[how] = True
        return case
    hindered = dice.choice(brokers)
    hindered[how] = True
    for partition in partitions if how == "down" else ():
        live = [id_ for id_ in partition["replicas"] if id_ != hindered["id"]]
        partition |= {"isr": live or partition["replicas"], "leader": (live or [None])[0]}
        if not live:
            partition["leaderless"] = True
            del partition["leader"]
    return case
