"""Seeded runs of one partition through losses, kills and ISR changes: promises are kept."""

import pytest

from tests.simulation.replication_model import NODES, Model

SEEDS = range(60)
STEPS = 1500


def run(seed: int, *, min_insync_replicas: int) -> Model:
    """A run with kills and restarts at random moments, at most two nodes down, then healed."""
    model = Model(seed, min_insync_replicas=min_insync_replicas)
    for _ in range(STEPS):
        model.step()
        dead = [n for n in NODES if not model.nodes[n].is_alive]
        if model.dice.random() < 0.01:
            if dead and model.dice.random() < 0.7:
                model.restart(model.dice.choice(dead))
            elif len(dead) < 2:
                model.kill(model.dice.choice([n for n in NODES if n not in dead]))
    model.heal()
    return model


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("min_insync_replicas", [1, 2])
def test_what_was_promised_is_on_every_replica(seed: int, min_insync_replicas: int) -> None:
    model = run(seed, min_insync_replicas=min_insync_replicas)
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
