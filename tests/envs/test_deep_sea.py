"""Deep Sea: its rewards by hand, its vector form against the single one."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from eipo.envs.deep_sea import DeepSeaEnv, DeepSeaVectorEnv


def right(env: DeepSeaEnv) -> int:
    """The action that goes right from where the diver is."""
    return int(env._sea.right[env._cell])


def test_gymnasium_accepts_it() -> None:
    check_env(gymnasium.make("eipo/DeepSea-v0").unwrapped, skip_render_check=True)


def test_the_treasure_lies_at_the_end_of_right_and_right_alone() -> None:
    env = DeepSeaEnv(size=5)
    env.reset()
    rewards, cells = [], []
    for t in range(5):
        cell, reward, terminated, truncated, _ = env.step(right(env))
        assert (terminated, truncated) == (t == 4, False)
        rewards.append(reward)
        cells.append(int(cell))
    assert cells == [6, 12, 18, 24, 29]  # one row and one column a step; the wall holds the last
    assert rewards == pytest.approx([-0.002] * 4 + [0.998])
    assert sum(rewards) == pytest.approx(0.99)


def test_left_earns_nothing_and_one_wrong_step_loses_the_treasure() -> None:
    env = DeepSeaEnv(size=5, cost=0.05)
    for wrong in range(5):
        env.reset()
        total = sum(env.step(1 - right(env) if t == wrong else right(env))[1] for t in range(5))
        assert total == pytest.approx(4 * -0.01)
    env.reset()
    assert [env.step(1 - right(env))[1] for _ in range(5)] == [0.0] * 5


def test_which_action_is_right_differs_between_cells_and_is_the_tasks_own() -> None:
    assert 0.3 < DeepSeaEnv(size=20)._sea.right.mean() < 0.7
    one, same, other = (DeepSeaEnv(mapping_seed=s)._sea.right for s in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()


def test_many_divers_equal_single_ones() -> None:
    ours = gymnasium.make_vec("eipo/DeepSea-v0", num_envs=3, vectorization_mode="vector_entry_point", size=4)
    theirs = SyncVectorEnv([lambda: DeepSeaEnv(size=4)] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    assert ours.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert ours.observation_space == theirs.observation_space
    assert (ours.reset(seed=0)[0] == theirs.reset(seed=0)[0]).all()
    rng, ended = np.random.default_rng(0), 0
    for _ in range(30):
        actions = rng.integers(2, size=3)
        mine, other = ours.step(actions), theirs.step(actions)
        for a, b in zip(mine[:4], other[:4], strict=True):
            assert np.array_equal(a, b)
        assert ("final_obs" in mine[4]) == ("final_obs" in other[4])
        if "final_obs" in mine[4]:
            ended += 1
            assert list(mine[4]["final_obs"]) == list(other[4]["final_obs"])
            assert min(mine[4]["final_obs"]) >= 16  # below the board
    assert ended == 7


def test_what_was_returned_never_changes() -> None:
    envs = DeepSeaVectorEnv(2, size=3)
    first = envs.reset()[0]
    second = envs.step(np.array([0, 1]))[0]
    kept = second.copy()
    envs.step(np.array([1, 1]))
    assert (first == 0).all()
    assert (second == kept).all()


@pytest.mark.parametrize("make", [DeepSeaEnv, lambda size: DeepSeaVectorEnv(2, size=size)])
def test_state_round_trip(make: type[DeepSeaEnv]) -> None:
    one, other = make(size=6), make(size=6)
    actions = [np.array([0, 1]), np.array([1, 1]), np.array([1, 0])]
    if make is DeepSeaEnv:
        actions = [int(a[0]) for a in actions]
    one.reset()
    one.step(actions[0])
    other.set_state(one.get_state())
    for action in actions[1:]:
        assert np.array_equal(one.step(action)[0], other.step(action)[0])


def test_wrong_use_is_named() -> None:
    with pytest.raises(ValueError, match="size must be at least 2"):
        DeepSeaEnv(size=1)
    env = DeepSeaEnv(size=2)
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset()
    with pytest.raises(ValueError, match="0 or 1"):
        env.step(2)
    with pytest.raises(ResetNeeded):
        DeepSeaVectorEnv(2).step(np.zeros(2, int))
