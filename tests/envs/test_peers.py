"""Other people's worlds under ids of ours: what the wrappers change, and that they train."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import eipo
from eipo.config import Envs
from eipo.envs.make import make_batch
from eipo.envs.peers import KINDS, MINATAR, MINIGRID

SMALL = {
    "envs.num": 2, "envs.steps": 16, "ppo.epochs": 1, "ppo.minibatches": 1, "net.dense": 8, "bonus.features": 8,
}  # fmt: skip


@pytest.mark.parametrize("task", MINIGRID)
def test_a_minigrid_task_shows_its_codes(task: str) -> None:
    env = gymnasium.make(f"eipo/MiniGrid-{task}-v0")
    obs, _ = env.reset(seed=3)
    assert isinstance(env.observation_space, spaces.MultiDiscrete)
    assert env.observation_space.nvec.shape == obs.shape == (7, 7, 3)
    theirs = gymnasium.make(f"minigrid:MiniGrid-{task}-v0")
    assert (obs == theirs.reset(seed=3)[0]["image"]).all()
    for action in np.random.default_rng(0).integers(7, size=50):
        mine, other = env.step(action), theirs.step(action)
        assert env.observation_space.contains(mine[0])
        assert (mine[0] == other[0]["image"]).all()
        assert mine[1:4] == other[1:4]
        if mine[2] or mine[3]:
            break


def test_minigrids_codes_fit_into_the_kinds() -> None:
    from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX

    assert [len(table) for table in (OBJECT_TO_IDX, COLOR_TO_IDX, STATE_TO_IDX)] == list(KINDS)


@pytest.mark.parametrize("name", MINATAR)
def test_a_minatar_game_is_the_game(name: str) -> None:
    from minatar import Environment

    env, game = gymnasium.make(f"eipo/MinAtar-{name}-v0"), Environment(MINATAR[name])
    obs, _ = env.reset(seed=3)
    game.seed(3)
    game.reset()
    actions = game.minimal_action_set()
    assert env.action_space == spaces.Discrete(len(actions))
    assert (obs == game.state()).all()
    for action in np.random.default_rng(0).integers(len(actions), size=60):
        obs, reward, over, truncated, _ = env.step(action)
        assert (reward, over) == game.act(actions[action])
        assert not truncated
        assert env.observation_space.contains(obs)
        assert (obs == game.state()).all()
        if over:
            break


def test_the_sparse_mountain_car_pays_at_the_flag_alone() -> None:
    env = gymnasium.make("eipo/SparseMountainCar-v0")
    obs, _ = env.reset(seed=0)
    rewards, over, low, high = [], False, obs, obs
    while not over:
        obs, reward, over, truncated, _ = env.step(2 if obs[1] >= 0 else 0)  # push the way it rolls
        assert not truncated
        rewards.append(reward)
        low, high = np.minimum(low, obs), np.maximum(high, obs)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
    assert (low >= -1).all()
    assert (high <= 1).all()
    assert high[1] > 0.5  # the speed is of the order of 1
    env.reset(seed=0)
    ends = [env.step(1)[1:4] for _ in range(200)]
    assert ends[-1] == (0.0, False, True)
    assert not any(reward for reward, _, _ in ends)


@pytest.mark.parametrize("env", ["MiniGrid-DoorKey-5x5", "MinAtar-Asterix", "SparseMountainCar", "DeepSea"])
def test_they_train(env: str) -> None:
    batch = make_batch(f"eipo/{env}-v0", Envs(num=2))
    assert batch.reset(0).shape[0] == 2
    run = eipo.train(f"eipo/{env}-v0", method="eipo", steps=64, settings=SMALL)
    assert [m["steps"] for m in run.metrics] == [32, 64]
    action, _ = run.agent.act(batch.obs)
    assert np.shape(action) == (2,)
