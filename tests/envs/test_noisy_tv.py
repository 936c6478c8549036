"""The noisy television: where it stands, that it is noise, and that nothing else changes."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from eipo.envs.maze import MazeEnv, MazeVectorEnv
from eipo.envs.maze import board as b


def test_gymnasium_accepts_it() -> None:
    check_env(gymnasium.make("eipo/NoisyTVMaze-v0").unwrapped, skip_render_check=True)


def test_it_hangs_in_the_wall_of_the_room_of_the_start_and_the_goal_is_near() -> None:
    assert len(set(b.TV.tolist())) == len(b.TV) == 10
    assert (b.BOARD[b.TV] == b.WALL).all()
    assert b.TV_START in b.COLUMN_ROOMS[4]
    assert set(b.TV.tolist()) & set((b.TV_START + b.CROP).ravel().tolist())  # seen from the start
    distance = b.distances(b.BOARD, b.TV_START)
    assert distance[b.GOAL_IN_VIEW & (distance >= 0)].min() == 13
    assert not np.isin(b.TV, [c + d for c in np.flatnonzero(b.GOAL_IN_VIEW) for d in (0,)]).any()


def test_it_shows_something_else_at_every_step_and_the_rest_stays() -> None:
    env = MazeEnv(tv=True)
    frames = [env.reset(seed=0)[0]] + [env.step(b.STAY)[0] for _ in range(200)]
    views = np.stack(frames)  # (201, 5, 5)
    seen = np.isin(b.TV_START + b.CROP, b.TV)
    assert seen.sum() == 5  # a column of the television
    assert (views[:, ~seen] == views[0][~seen]).all()
    pictures = views[:, seen]
    assert len(np.unique(pictures, axis=0)) > 120  # of 3^5 = 243
    share = [(pictures == code).mean() for code in (b.FLOOR, b.WALL, b.OBJECT, b.GOAL)]
    assert share[0] == 0
    assert share[1:] == pytest.approx([1 / 3] * 3, abs=0.05)
    assert env.reset(seed=0)[0].tolist() == frames[0].tolist()


def test_nobody_walks_into_it() -> None:
    env = MazeEnv(tv=True)
    env.reset(seed=1)
    cells = {env.step(b.LEFT)[4]["cell"] for _ in range(100)}
    assert cells == {b.TV_START - 1}  # the column at the wall


@pytest.mark.parametrize("mode", tuple(AutoresetMode))
def test_many_boards_equal_single_ones(mode: AutoresetMode) -> None:
    ours = MazeVectorEnv(3, tv=True, max_episode_steps=7, autoreset_mode=mode)
    theirs = SyncVectorEnv([lambda: MazeEnv(tv=True, max_episode_steps=7)] * 3, autoreset_mode=mode)
    assert np.array_equal(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])
    rng = np.random.default_rng(0)
    for _ in range(30):
        actions = rng.integers(5, size=3)
        mine, other = ours.step(actions), theirs.step(actions)
        for a, c in zip(mine[:4], other[:4], strict=True):
            assert np.array_equal(a, c)
        assert np.array_equal(mine[4]["cell"], other[4]["cell"])
        if "final_obs" in mine[4]:
            assert np.array_equal(np.stack(mine[4]["final_obs"]), np.stack(other[4]["final_obs"]))
        ended = mine[2] | mine[3]
        if mode is AutoresetMode.DISABLED and ended.any():
            again = [envs.reset(options={"reset_mask": ended.copy()})[0] for envs in (ours, theirs)]
            assert np.array_equal(again[0], again[1])


@pytest.mark.parametrize("make", [lambda: MazeEnv(tv=True), lambda: MazeVectorEnv(2, tv=True, max_episode_steps=9)])
def test_state_round_trip_continues_exactly(make: type[MazeEnv]) -> None:
    one, other = make(), make()
    actions = [np.full(2, a) for a in (0, 2, 4, 2, 3, 1, 2, 4, 0, 2, 2, 2)]
    if isinstance(one, MazeEnv):
        actions = [int(a[0]) for a in actions]
    one.reset(seed=3)
    for action in actions[:4]:
        last = one.step(action)[0]
    restored = other.set_state(one.get_state())
    assert restored is not None
    assert np.array_equal(restored[0], last)
    for action in actions[4:]:
        assert np.array_equal(one.step(action)[0], other.step(action)[0])
