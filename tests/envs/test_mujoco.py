"""Continuous control: ten tasks in threads are Gymnasium's own, two are sparse, observations are normalized."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import eipo
from eipo.config import Envs
from eipo.envs.make import make_batch
from eipo.envs.vector import Threads
from eipo.presets import MUJOCO, make_config
from eipo.training import Training

TINY = {
    "envs.num": 2, "envs.steps": 8, "ppo.epochs": 1, "ppo.minibatches": 2, "net.dense": 8, "bonus.features": 8,
    "bonus.share": 1.0, "compute.threads": 1,
}  # fmt: skip


@pytest.mark.parametrize("task", MUJOCO)
def test_tasks_in_threads_equal_gymnasiums_and_learn(task: str) -> None:
    """Two environments, two threads, twelve steps; episodes of seven steps, so that some end."""
    ours = make_batch(f"{task}-v5", Envs(num=2, options={"max_episode_steps": 7}), threads=2)
    assert isinstance(ours.venv, Threads)
    make = lambda: gym.make(f"{task}-v5", max_episode_steps=7)  # noqa: E731
    peer = SyncVectorEnv([make, make], autoreset_mode=AutoresetMode.SAME_STEP)
    obs, _ = peer.reset(seed=3)
    assert (ours.reset(3) == obs).all()
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(12):
        low, high = ours.action_space.low, ours.action_space.high
        action = rng.uniform(low, high, (2, *low.shape)).astype(np.float32)
        step = ours.step(action)
        obs, reward, terminated, truncated, info = peer.step(action)
        assert (step.obs == obs).all()
        assert (step.score == reward.astype(np.float32)).all()
        assert (step.terminated == terminated).all()
        assert (step.truncated == truncated).all()
        for row, i in enumerate(np.flatnonzero(step.done)):
            assert (step.last_obs[row] == info["final_obs"][i]).all()
            ended += 1
    assert ended >= 2
    ours.close()
    peer.close()
    training = Training(make_config(f"{task}-v5", steps=16, settings=TINY))
    before = [p.clone() for p in training.agent.parameters()]
    training.iterate()
    training.close()
    assert any((p != q).any() for p, q in zip(before, training.agent.parameters(), strict=True))


@pytest.mark.parametrize(("name", "task", "distance"), [
    ("eipo/SparseHalfCheetah-v0", "HalfCheetah-v5", 5.0), ("eipo/SparseHopper-v0", "Hopper-v5", 1.0),
])  # fmt: skip
def test_sparse_tasks_reward_the_distance_alone(name: str, task: str, distance: float) -> None:
    sparse, dense = gym.make(name), gym.make(task)
    assert sparse.spec is not None
    assert sparse.spec.max_episode_steps == 1000
    first, _ = sparse.reset(seed=0)
    assert (first == dense.reset(seed=0)[0]).all()
    rewards = []
    for ahead in (0.0, distance - 0.5, distance + 0.5):
        for env in (sparse, dense):
            env.unwrapped.data.qpos[0] = ahead
        action = np.zeros(sparse.action_space.shape, np.float32)
        obs, reward, terminated, _, info = sparse.step(action)
        same, _, dense_terminated, _, _ = dense.step(action)
        assert (obs == same).all()
        assert terminated == dense_terminated
        assert reward == float(info["x_position"] > distance)
        rewards.append(reward)
    assert rewards == [0.0, 0.0, 1.0]
    assert make_config(name, steps=1).preset == "mujoco"


def test_actions_beyond_the_bounds_are_clipped_for_the_world_alone() -> None:
    training = Training(make_config("InvertedPendulum-v5", steps=16, settings=TINY))
    for head in training.agent.policies.values():
        torch.nn.init.constant_(head.bias, 100.0)
    seen = []
    step = training.envs.venv.step
    training.envs.venv.step = lambda a: (seen.append(a), step(a))[1]  # type: ignore[method-assign]
    rollout, _ = training.iterate()
    training.close()
    assert (np.stack(seen) == 3.0).all()  # the task's bound
    assert (rollout.action > 90).all()  # what was drawn, of which the log probability is
    assert (rollout.log_prob > -10).all()


def test_normalization_is_by_all_frames_acted_on_and_travels_with_the_agent(tmp_path: Path) -> None:
    run = eipo.train("Reacher-v5", steps=48, settings=TINY, out=tmp_path / "run")
    moments = run.agent.net.encoder.moments
    assert moments is not None
    assert moments.count == 48
    loaded = eipo.load(tmp_path / "run")
    for name, value in moments.state_dict().items():
        assert (loaded.net.encoder.moments.state_dict()[name] == value).all()
    obs = np.random.default_rng(0).normal(size=(3, 10))
    a, b = (agent.act(obs, deterministic=True)[0] for agent in (run.agent, loaded))
    assert (a == b).all()


def test_moments_are_those_of_the_frames_and_fixed_while_a_rollout_is_used() -> None:
    training = Training(make_config("Reacher-v5", steps=32, settings=TINY))
    first, _ = training.iterate()
    seen = first.frames[first.index.flatten()]
    encoder = training.agent.encoder
    torch.testing.assert_close(encoder.moments.mean, seen.mean(0))
    torch.testing.assert_close(encoder.moments.std(), seen.std(0, correction=0).clamp(min=1e-12))
    x = (seen.float() - seen.mean(0).float()) / seen.std(0, correction=0).float()
    torch.testing.assert_close(encoder(seen), encoder.layers(x.clamp(-10, 10)), atol=1e-4, rtol=1e-4)
    before = encoder.moments.mean.clone()
    training.learner.update = lambda *_: (  # type: ignore[method-assign]
        {"same": torch.tensor(float((encoder.moments.mean == before).all()))}
    )
    _, metrics = training.iterate()
    training.close()
    assert metrics["same"] == 1.0
    assert (encoder.moments.mean != before).any()
