"""The maze's vector form, measured against gymnasium's vectorization of the single form."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from eipo.envs.maze import MazeEnv, MazeVectorEnv, register
from eipo.envs.maze import board as b

register()

MODES = tuple(AutoresetMode)
N, STEPS = 4, 12


def same(one: Any, other: Any) -> None:
    """Equal in type, layout and value, through dicts and object arrays."""
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, np.ndarray) and one.dtype == object:
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            same(left, right)
    else:
        assert data_equivalence(one, other, exact=True), (one, other)


def walks(steps: int, boards: int, seed: int = 0) -> np.ndarray:
    """Random actions that also get somewhere: each is repeated a few times."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 5, (steps // 3 + 1, boards)).repeat(3, axis=0)[:steps]


@pytest.mark.parametrize("observation", ["grid", "pixels"])
@pytest.mark.parametrize("objects", ["corridor", "column"])
@pytest.mark.parametrize("mode", MODES)
def test_it_equals_gymnasiums_vectorization_of_the_single_form(
    mode: AutoresetMode, objects: str, observation: str
) -> None:
    kwargs: dict[str, Any] = {"objects": objects, "observation": observation, "max_episode_steps": STEPS}
    ours = MazeVectorEnv(N, autoreset_mode=mode, **kwargs)
    theirs = SyncVectorEnv([lambda: MazeEnv(**kwargs)] * N, autoreset_mode=mode)
    assert ours.metadata == theirs.metadata
    assert ours.observation_space == theirs.observation_space
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.action_space == theirs.action_space
    same(ours.reset(seed=7), theirs.reset(seed=7))
    assert ours.np_random_seed == theirs.np_random_seed == (7, 8, 9, 10)
    ended = 0
    for t, actions in enumerate(walks(60, N)):
        one, other = ours.step(actions), theirs.step(actions)
        same(one, other)
        assert one[0] in ours.observation_space
        ended += int(one[3].sum())
        if mode is AutoresetMode.DISABLED and one[3].any():
            reset = {"options": {"reset_mask": one[3]}}
            same(ours.reset(**reset), theirs.reset(options={"reset_mask": one[3].copy()}))
        if t == 30:  # from here on the boards' episodes end at different steps
            mask = np.array([True, False, True, False])
            seeds = [3, None, None, 5]
            same(
                ours.reset(seed=seeds, options={"reset_mask": mask}),
                theirs.reset(seed=seeds, options={"reset_mask": mask.copy()}),
            )
    assert ended > 2 * N


def test_full_episodes_equal_the_single_form_as_made_by_gymnasium() -> None:
    envs = [gymnasium.make("eipo/AlignedMaze-v0") for _ in range(2)]
    vector = gymnasium.make_vec("eipo/AlignedMaze-v0", num_envs=2)
    frames, _ = vector.reset(seed=11)
    for i, env in enumerate(envs):
        np.testing.assert_array_equal(env.reset(seed=11 + i)[0], frames[i])
    for actions in walks(1100, 2, seed=3):
        frames, rewards, _, truncations, infos = vector.step(actions)
        for i, env in enumerate(envs):
            frame, reward, terminated, truncated, _ = env.step(actions[i])
            assert (reward, terminated, truncated) == (rewards[i], False, truncations[i])
            if truncated:
                np.testing.assert_array_equal(infos["final_obs"][i], frame)
                frame, _ = env.reset()
            np.testing.assert_array_equal(frames[i], frame)


def test_final_obs_is_the_true_last_frame() -> None:
    envs = MazeVectorEnv(2, max_episode_steps=2)
    first, _ = envs.reset(seed=0)
    _, _, _, truncations, infos = envs.step(np.array([b.LEFT, b.STAY]))
    assert not truncations.any()
    assert set(infos) == {"cell", "_cell"}
    frames, _, terminations, truncations, infos = envs.step(np.array([b.LEFT, b.DOWN]))
    assert truncations.all()
    assert not terminations.any()
    board = b.BOARD.reshape(54, 54)
    row, column = divmod(b.START, 54)
    np.testing.assert_array_equal(infos["final_obs"][0], board[row - 2 : row + 3, column - 4 : column + 1])
    np.testing.assert_array_equal(infos["final_obs"][1], board[row - 1 : row + 4, column - 2 : column + 3])
    np.testing.assert_array_equal(infos["final_info"]["cell"], [b.START - 2, b.START + 54])
    np.testing.assert_array_equal(infos["cell"], [b.START] * 2)
    np.testing.assert_array_equal(frames, first)


@pytest.mark.parametrize("observation", ["grid", "pixels"])
def test_what_was_returned_never_changes(observation: str) -> None:
    envs = MazeVectorEnv(3, observation=observation, max_episode_steps=4)
    kept = [(envs.reset(seed=0))]
    kept += [envs.step(actions) for actions in walks(9, 3)]
    copies = [np.copy(one[0]) for one in kept]
    cells = [np.copy(one[-1]["cell"]) for one in kept]
    for actions in walks(9, 3, seed=1):
        envs.step(actions)
    for one, frame, cell in zip(kept, copies, cells, strict=True):
        np.testing.assert_array_equal(one[0], frame)
        np.testing.assert_array_equal(one[-1]["cell"], cell)
    for i, one in enumerate(kept):
        for other in kept[i + 1 :]:
            assert not np.shares_memory(one[0], other[0])
            assert not np.shares_memory(one[-1]["cell"], other[-1]["cell"])


@pytest.mark.parametrize("mode", MODES)
def test_state_round_trip_continues_exactly(mode: AutoresetMode) -> None:
    def play(envs: MazeVectorEnv) -> list[Any]:
        results = []
        for actions in walks(20, N, seed=9):
            results.append(envs.step(actions))
            if mode is AutoresetMode.DISABLED and results[-1][3].any():
                results.append(envs.reset(options={"reset_mask": results[-1][3]}))
        return results

    envs = MazeVectorEnv(N, max_episode_steps=6, autoreset_mode=mode)
    envs.reset(seed=1)
    for actions in walks(6, N):  # NEXT_STEP and DISABLED are caught between an end and its reset
        last = envs.step(actions)
    state = envs.get_state()
    for i in range(N):
        state["rng"][i] = json.loads(json.dumps(state["rng"][i]))
    fresh = MazeVectorEnv(N, max_episode_steps=6, autoreset_mode=mode)
    restored = fresh.set_state(state)
    assert restored is not None
    np.testing.assert_array_equal(restored[0], last[0])
    np.testing.assert_array_equal(restored[1]["cell"], last[4]["cell"])
    if mode is AutoresetMode.DISABLED:
        for one in (envs, fresh):
            with pytest.raises(ResetNeeded):
                one.step(walks(1, N)[0])
            one.reset(options={"reset_mask": last[3]})
    before = {key: np.copy(value) for key, value in state.items() if isinstance(value, np.ndarray)}
    for one, other in zip(play(envs), play(fresh), strict=True):
        for left, right in zip(one, other, strict=True):
            same(left, right)
    for key, value in before.items():
        np.testing.assert_array_equal(state[key], value)
    assert fresh.np_random_seed == (-1,) * N


def test_a_state_from_before_the_first_reset_can_be_restored() -> None:
    envs, fresh = MazeVectorEnv(2), MazeVectorEnv(2)
    assert fresh.set_state(envs.get_state()) is None
    same(envs.reset(), fresh.reset())
    same(envs.get_state(), fresh.get_state())
    with pytest.raises(ValueError, match="2 boards, not of 3"):
        MazeVectorEnv(3).set_state(envs.get_state())


def test_make_vec() -> None:
    envs = gymnasium.make_vec("eipo/Maze-v0", num_envs=3, max_episode_steps=5, observation="pixels")
    assert isinstance(envs, MazeVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.reset(seed=0)[0].shape == (3, 3, 84, 84)
    assert [envs.step(np.full(3, 4))[3].tolist() for _ in range(5)][-1] == [True] * 3
    assert gymnasium.make_vec("eipo/Maze-v0", num_envs=2).max_episode_steps == 500
    later = gymnasium.make_vec("eipo/Maze-v0", num_envs=2, autoreset_mode="NextStep")
    assert later.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert MazeVectorEnv.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    sync = gymnasium.make_vec("eipo/Maze-v0", num_envs=2, vectorization_mode="sync", max_episode_steps=7)
    sync.reset(seed=0)
    assert [bool(sync.step(np.full(2, 4))[3].all()) for _ in range(7)] == [False] * 6 + [True]


def test_gymnasiums_episode_statistics_wrapper_works() -> None:
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(MazeVectorEnv(2, max_episode_steps=5))
    envs.reset(seed=0)
    for _ in range(5):
        *_, infos = envs.step(np.array([4, 4]))
    np.testing.assert_array_equal(infos["episode"]["l"], [5, 5])


def test_render_gives_a_picture_of_every_board() -> None:
    for mode in ("rgb_array", "ansi"):
        envs = MazeVectorEnv(2, render_mode=mode)
        single = MazeEnv(render_mode=mode)
        with pytest.raises(ResetNeeded):
            envs.render()
        envs.reset(seed=3)
        envs.step(np.array([0, 1]))
        single.reset(seed=4)
        single.step(1)
        pictures = envs.render()
        assert pictures is not None
        assert len(pictures) == 2
        np.testing.assert_array_equal(pictures[1], single.render())


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"observation": "rgb"}, "'grid', 'pixels'"),
        ({"render_mode": "human"}, "'rgb_array', 'ansi'"),
        ({"objects": "here"}, "'corridor', 'column'"),
        ({"max_episode_steps": 0}, "at least 1"),
        ({"num_envs": 0}, "at least 1"),
        ({"autoreset_mode": "never"}, "'SameStep'"),
    ],
)
def test_wrong_arguments_are_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        MazeVectorEnv(**wrong)


@pytest.mark.parametrize("wrong", [[5, 0], [-1, 0], [0, 10], [0, -11], [256, 0], [0.0, 1.0]])
def test_a_wrong_action_is_refused_and_changes_nothing(wrong: list[float]) -> None:
    envs = MazeVectorEnv(2)
    envs.reset(seed=0)
    before = envs.get_state()
    with pytest.raises(ValueError, match="from 0 to 4"):
        envs.step(np.array(wrong))
    same(before, envs.get_state())


def test_other_wrong_use_is_named() -> None:
    envs = MazeVectorEnv(2)
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros(2, dtype=np.int64))
    with pytest.raises(ResetNeeded):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset(seed=np.int64(3))  # NumPy's integers are seeds too
    for actions in (np.zeros(3, dtype=np.int64), np.zeros((2, 1), dtype=np.int64), np.int64(1)):
        with pytest.raises(ValueError, match="one for each board"):
            envs.step(actions)
    with pytest.raises(ValueError, match="one for each board"):
        envs.reset(seed=[1, 2, 3])
    for mask in ([True, False], np.ones(3, dtype=bool), np.ones(2), np.zeros(2, dtype=bool)):
        with pytest.raises(ValueError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
