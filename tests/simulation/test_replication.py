"""Seeded runs of one partition through losses, kills and ISR changes: promises are kept.

A failure tells its seed and the last events; the same seed fails again. Each invariant of the
model is shown to catch a bug that is planted for it.
"""

from dataclasses import replace

import pytest

from broker.replication.partition import partition_state
from broker.replication.partition.effects import Effects, HighWatermarkAdvanced
from broker.replication.partition.events import LogTruncated
from broker.replication.partition.partition_state import PartitionState
from tests.simulation.replication_model import NODES, Metadata, Model, Node
from tests.support.cases import case

SEEDS = range(30)
MANY_SEEDS = range(1_000, 2_000)
"""Twice: with one replica in sync as the least, and with two."""
STEPS = 1500


def run(seed: int, *, min_insync_replicas: int) -> Model:
    """A run with kills and restarts at random moments, at most two nodes down, then healed."""
    model = Model(seed, min_insync_replicas=min_insync_replicas)
    try:
        for _ in range(STEPS):
            model.step()
            _torment(model)
        model.heal()
    except AssertionError as error:
        where = f"seed {seed}, min.insync.replicas={min_insync_replicas}"
        raise AssertionError(f"{error}\n{where}\n{model.story()}") from error
    return model


def _run_all(seeds: range, *, min_insync_replicas: int) -> None:
    for seed in seeds:
        run(seed, min_insync_replicas=min_insync_replicas)


def _torment(model: Model) -> None:
    dead = [n for n in NODES if not model.nodes[n].is_alive]
    if model.dice.random() < 0.01:
        if dead and model.dice.random() < 0.7:
            model.restart(model.dice.choice(dead))
        elif len(dead) < 2:
            model.kill(model.dice.choice([n for n in NODES if n not in dead]))


@pytest.mark.parametrize("min_insync_replicas", [1, 2])
def test_what_was_promised_is_on_every_replica(min_insync_replicas: int) -> None:
    for seed in SEEDS:
        with case(seed):
            _is_on_every_replica(run(seed, min_insync_replicas=min_insync_replicas))


def _is_on_every_replica(model: Model) -> None:
    assert len(model.committed) > 10, "nothing happened"
    for node in model.nodes.values():
        found = {offset: node.log[offset].value for offset in model.committed}
        assert found == model.committed
    leader = model.nodes[model.metadata.leader]
    values = [record.value for record in leader.log]
    assert len(values) == len(set(values))


def test_a_seed_runs_the_same_twice() -> None:
    first, second = (run(7, min_insync_replicas=2) for _ in range(2))
    assert first.committed == second.committed
    assert first.now_ms == second.now_ms


@pytest.mark.soak
@pytest.mark.parametrize("min_insync_replicas", [1, 2])
def test_two_thousand_more_seeds(min_insync_replicas: int) -> None:
    _run_all(MANY_SEEDS, min_insync_replicas=min_insync_replicas)
    print(f"{len(MANY_SEEDS)} seeds with min.insync.replicas={min_insync_replicas}")


def _keep_epoch(model: Model, metadata: Metadata) -> Metadata:
    """The controller forgets that a new leader begins an epoch."""
    return replace(elect(model, metadata), leader_epoch=metadata.leader_epoch)


def _elect_anybody(model: Model, metadata: Metadata) -> Metadata:
    """The controller takes a live replica that is not in sync."""
    live = [n for n in NODES if n in metadata.broker_epochs]
    outside = [n for n in live if n not in metadata.isr]
    if not outside or metadata.leader in live:
        return elect(model, metadata)
    return replace(
        metadata,
        leader=outside[0],
        isr=(outside[0],),
        leader_epoch=metadata.leader_epoch + 1,
        partition_epoch=metadata.partition_epoch + 1,
    )


def _promise_at_once(state: PartitionState, _now_ms: int) -> Effects:
    """The leader waits for nobody."""
    if state.high_watermark == state.log_end_offset:
        return ()
    state.high_watermark = state.log_end_offset
    return (HighWatermarkAdvanced(state.log_end_offset),)


def _cut_too_much(
    model: Model, node: Node, leader_epoch: int, _: tuple[int, ...], incarnation: object
) -> None:
    """The follower cuts its log in the middle."""
    if model._is_current(node, leader_epoch, incarnation):
        del node.log[len(node.log) // 2 :]
        model.handle(node, LogTruncated(len(node.log)))


elect = Model._elect
PLANTED = {
    "OneLeaderPerEpoch": (Model, "_elect", _keep_epoch),
    "AcknowledgedReadable|IsrHoldsCommitted": (Model, "_elect", _elect_anybody),
    "IsrHoldsCommitted": (partition_state, "_maybe_advance_high_watermark", _promise_at_once),
    "CommittedNeverTruncated": (Model, "_truncate", _cut_too_much),
    "MinIsrBeforePromise": (PartitionState, "has_enough_replicas", property(lambda _: True)),
}


@pytest.mark.parametrize("invariant", PLANTED)
def test_an_invariant_catches_the_bug_planted_for_it(
    invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*PLANTED[invariant])
    with pytest.raises(AssertionError, match=f"^({invariant}).*") as caught:
        _run_all(SEEDS, min_insync_replicas=2)
    assert "\nseed " in str(caught.value)
    assert " ms, node " in str(caught.value)
