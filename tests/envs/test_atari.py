"""Atari: every game learns; scores, lives and last frames are the emulator's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, VectorEnv

import eipo
from eipo.config import Envs
from eipo.envs.atari import Atari
from eipo.envs.batch import Batch
from eipo.envs.make import make_batch as make
from eipo.presets import PRESETS, make_config
from eipo.training import Training

GAMES = (Path(__file__).parent / "atari_games.txt").read_text().split()
TINY = {
    "envs.num": 2, "envs.steps": 4, "ppo.epochs": 1, "ppo.minibatches": 1, "net.dense": 8, "net.width": 8,
    "bonus.features": 8, "bonus.share": 1.0, "compute.threads": 1,
}  # fmt: skip


def make_batch(env: str, num: int, options: dict[str, Any], clip_reward: bool = False) -> Batch:
    return make(env, Envs(num=num, options=options, clip_reward=clip_reward))


def test_the_games_are_the_papers() -> None:
    assert len(set(GAMES)) == 61


@pytest.mark.parametrize("game", GAMES)
def test_every_game_starts_steps_and_learns(game: str) -> None:
    training = Training(make_config(f"ALE/{game}-v5", preset="atari-paper", steps=8, settings=TINY))
    before = [p.clone() for p in training.agent.parameters()]
    rollout, metrics = training.iterate()
    training.close()
    assert rollout.frames.shape[1:] == (1, 84, 84)
    assert rollout.frames.dtype == torch.uint8
    assert rollout.frames.float().std() > 0  # a picture
    assert np.isfinite([v for v in metrics.values() if isinstance(v, float)]).all()
    assert any((p != q).any() for p, q in zip(before, training.agent.parameters(), strict=True))


def play(envs: Batch, steps: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    envs.reset(seed)
    return [envs.step(rng.integers(envs.action_space.n, size=envs.num)) for _ in range(steps)]


def test_scores_are_the_emulators_and_learned_rewards_their_signs() -> None:
    """Against ale-py's own vector environment, which is told to clip nothing."""
    options = {"repeat_action_probability": 0.0}
    ours = play(make_batch("ALE/Breakout-v5", 4, options, clip_reward=True), 100)
    from ale_py.vector_env import AtariVectorEnv

    peer = AtariVectorEnv(
        "breakout", 4, stack_num=1, reward_clipping=False, use_fire_reset=False,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    peer.reset(seed=0)
    for step in ours:
        obs, reward, terminated, truncated, _ = peer.step(rng.integers(4, size=4))
        assert (step.obs == obs).all()
        assert (step.score == reward).all()
        assert (step.reward == np.sign(reward)).all()
        assert (step.over == (terminated | truncated)).all()
    assert sum(step.score.sum() for step in ours) > 0
    peer.close()


def test_a_lost_life_ends_what_is_learned_from_and_not_the_game() -> None:
    options = {"repeat_action_probability": 0.0, "use_fire_reset": True}
    plain = play(make_batch("ALE/Breakout-v5", 4, options), 160)
    lives = play(make_batch("ALE/Breakout-v5", 4, {**options, "life_loss": True}), 160)
    lost = games = 0
    for a, b in zip(plain, lives, strict=True):
        assert (a.obs == b.obs).all()  # the games are the same ones: nothing is reset
        assert (a.score == b.score).all()
        assert (a.over == b.over).all()
        assert (b.done >= b.over).all()
        assert (b.terminated >= (b.done & ~b.over)).all()
        for row, i in enumerate(np.flatnonzero(b.done)):
            if not b.over[i]:
                assert (b.last_obs[row] == b.obs[i]).all()  # the game goes on from there
                lost += 1
            else:
                assert (b.last_obs[row] == a.last_obs[list(np.flatnonzero(a.done)).index(i)]).all()
                games += 1
    assert games > 0
    assert lost >= 4 * games  # five lives


def test_the_longest_episode_is_27000_steps_and_a_truncation() -> None:
    for preset in ("atari-paper", "atari-ff"):
        assert "max_num_frames_per_episode" not in PRESETS[preset].envs.options
    assert gym.spec("ALE/Venture-v5").kwargs["max_num_frames_per_episode"] == 27_000 * 4
    steps = play(make_batch("ALE/Venture-v5", 2, {"max_num_frames_per_episode": 40}), 10)
    assert [step.done.tolist() for step in steps] == [[False] * 2] * 9 + [[True] * 2]
    assert steps[-1].truncated.all()
    assert not steps[-1].terminated.any()


def test_the_true_last_frame_is_not_the_next_games_first() -> None:
    """ale-py's NEXT_STEP mode shows the last frame as the observation of the step that ends the game."""
    steps = play(make_batch("ALE/Breakout-v5", 2, {"max_num_frames_per_episode": 40, "noop_max": 9}), 10)
    from ale_py.vector_env import AtariVectorEnv

    peer = AtariVectorEnv(
        "breakout", 2, stack_num=1, use_fire_reset=False, max_num_frames_per_episode=40, noop_max=9,
        repeat_action_probability=0.25, autoreset_mode=AutoresetMode.NEXT_STEP,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    peer.reset(seed=0)
    for _ in steps:
        obs, *_ = peer.step(rng.integers(4, size=2))
    assert (steps[9].last_obs == obs).all()
    assert (steps[9].obs != obs).any()


def test_sticky_actions_actions_and_colour_are_options() -> None:
    def frames(**options: Any) -> np.ndarray:
        return np.stack([s.obs for s in play(make_batch("ALE/Breakout-v5", 2, options), 40)])

    assert (frames(repeat_action_probability=0.0) != frames(repeat_action_probability=0.25)).any()
    assert (frames() == frames(repeat_action_probability=0.25)).all()  # as the v5 ids have it
    assert make_batch("ALE/Breakout-v5", 2, {}).action_space.n == 4
    assert make_batch("ALE/Breakout-v5", 2, {"full_action_space": True}).action_space.n == 18
    colour = make_batch("ALE/Breakout-v5", 2, {"grayscale": False, "max_num_frames_per_episode": 8})
    assert colour.observation_space.shape == (84, 84, 3)
    assert play(colour, 2)[-1].last_obs.shape == (2, 84, 84, 3)


@pytest.mark.parametrize("name", ["reward_clipping", "episodic_life", "stack_num"])
def test_options_that_would_lose_something_are_refused(name: str) -> None:
    with pytest.raises(eipo.EipoError, match=f"{name} is not used for Atari"):
        make_batch("ALE/Pong-v5", 2, {name: 1})


def test_atari_takes_the_papers_preset_by_itself() -> None:
    assert make_config("ALE/Venture-v5", steps=1).preset == "atari-paper"


def test_four_frames_are_kept_once_and_go_on_over_a_lost_life() -> None:
    """129 frames of each of 2 games and the true last ones of games: not four times as many, and none for a life."""
    settings = {**TINY, "envs.steps": 128}
    training = Training(make_config("ALE/Breakout-v5", preset="atari-ff", steps=512, settings=settings))
    before: list[torch.Tensor] = []
    for _ in range(2):
        rollout, _ = training.iterate()
        carried = 2 * 3 if before else 0
        assert len(rollout.frames) == carried + 2 * 129 + len(rollout.episodes)
        assert rollout.done.sum() > len(rollout.episodes)
        stacks = rollout.seen(rollout.index)  # (128, 2, 4, 1, 84, 84)
        lost = rollout.done & (rollout.index.roll(-1, 0) == rollout.next_index)
        assert lost.sum() >= rollout.done.sum() - len(rollout.episodes) - 2
        for t, n in lost[:-1].nonzero().tolist():
            assert (stacks[t + 1, n, :3] == stacks[t, n, 1:]).all()
            assert rollout.reset[t + 1, n]
        if before:
            starts = rollout.reset[0] & (stacks[0, :, 0] == stacks[0, :, 3]).flatten(1).all(1)
            for n in (~starts).nonzero().flatten().tolist():
                assert (stacks[0, n, :3] == before[-1][n, 1:]).all()
        before = list(stacks)
    training.close()
    assert training.agent.encoder(stacks[5]).shape == (2, 8)


def test_a_game_with_an_own_vector_form_is_not_stepped_one_by_one() -> None:
    envs = make_batch("ALE/Pong-v5", 2, {})
    assert isinstance(envs.venv, Atari)
    assert isinstance(envs.venv, VectorEnv)
