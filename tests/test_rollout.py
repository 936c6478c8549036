"""Acting: frames, ends of episodes, values beyond them, and whose an episode is.

Environment i of the scripted world has episodes of 1, 3, 5 steps; its frames say (i, episode, step in the episode).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from eipo.core import categorical
from eipo.nets import Agent
from eipo.rollout import MIXED, Carry, Episode, collect

T = 7
LENGTH = (1, 3, 5)
ENDS = ["terminate", "truncate", "turns", "both"]


def expected_frame(env: int, t: int) -> list[float]:
    """s_t: step t is step t mod length of episode t div length."""
    return [env, t // LENGTH[env], t % LENGTH[env]]


def expected_next_frame(env: int, t: int) -> list[float]:
    """s_{t+1}: one step further in the same episode, never the first frame of the next."""
    return [env, t // LENGTH[env], t % LENGTH[env] + 1]


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_frames_are_the_true_ones(
    scripted: Callable, make_agent: Callable, play: Callable, end: str, repeats: bool
) -> None:
    envs = scripted(end=end)
    rollout = play(envs, make_agent(envs), T, repeats=repeats)
    for n in range(3):
        for t in range(T):
            assert rollout.frames[rollout.index[t, n]].tolist() == expected_frame(n, t)
            assert rollout.frames[rollout.next_index[t, n]].tolist() == expected_next_frame(n, t)


def expected_stack(env: int, t: int, next_frame: bool = False) -> list[list[float]]:
    """The last three frames of the episode of step t, its first one repeated where there are not three yet."""
    first = t - t % LENGTH[env]
    frames = [expected_frame(env, s) for s in range(first, t + 1)]
    frames += [expected_next_frame(env, t)] * next_frame
    return ([frames[0]] * 2 + frames)[-3:]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("steps", [(T,), (3, 1, 6)])
def test_stacked_frames_are_the_episodes_last_ones_each_kept_once(
    scripted: Callable, make_agent: Callable, end: str, steps: tuple[int, ...]
) -> None:
    envs = scripted(end=end)
    agent = make_agent(envs, stack=3)
    carry, g, t = Carry.start(agent, 3), torch.Generator().manual_seed(0), 0
    for k, length in enumerate(steps):
        rollout = collect(envs, agent, ["EI"], length, carry, g)
        for s in range(length):
            for n in range(3):
                assert rollout.seen(rollout.index[s, n]).tolist() == expected_stack(n, t + s)
                assert rollout.seen(rollout.next_index[s, n]).tolist() == expected_stack(n, t + s, True)
                assert rollout.frames[rollout.next_index[s, n]].tolist() == expected_next_frame(n, t + s)
        # Present frames and the one after the last step, true last frames, and two of each environment from before.
        assert len(rollout.frames) == 3 * (length + 1) + int(rollout.done.sum()) + (6 if k else 0)
        t += length


def test_a_stacked_agent_acts_and_values_by_its_stack(scripted: Callable, make_agent: Callable, play: Callable) -> None:
    envs = scripted(end="truncate")
    agent = make_agent(envs, stack=3)
    rollout = play(envs, agent, T)
    for n in range(3):
        for t in range(T):
            now, then = (torch.tensor([expected_stack(n, t, after)]) for after in (False, True))
            h, h_next = agent.encode(now), agent.encode(then)
            torch.testing.assert_close(rollout.value["I__EI"][t, n], agent.critics["I__EI"](h)[0, 0])
            torch.testing.assert_close(rollout.next_value["I__EI"][t, n], agent.critics["I__EI"](h_next)[0, 0])
            params = agent.heads(h, ["EI"], []).policy["EI"]
            expected = agent.actions.log_prob(params, rollout.action[t, n][None])[0]
            torch.testing.assert_close(rollout.log_prob[t, n], expected)


def test_resets_ends_and_rewards(scripted: Callable, make_agent: Callable, play: Callable) -> None:
    envs = scripted(end="turns")  # even episodes terminate, odd ones are truncated
    rollout = play(envs, make_agent(envs), T)
    for n, length in enumerate(LENGTH):
        for t in range(T):
            over, even = (t + 1) % length == 0, t // length % 2 == 0
            assert rollout.reset[t, n] == (t % length == 0)
            assert rollout.done[t, n] == over
            assert rollout.terminated[t, n] == (over and even)
            assert rollout.reward[t, n] == t % length + 1
    assert rollout.terminated.any()
    assert (rollout.done & ~rollout.terminated).any()


def test_resets_go_on_into_the_next_rollout(scripted: Callable, make_agent: Callable) -> None:
    envs = scripted()
    agent = make_agent(envs)
    carry, g = Carry.start(agent, 3), torch.Generator().manual_seed(0)
    pieces = [collect(envs, agent, ["EI"], steps, carry, g) for steps in (3, 1, 6)]
    reset = torch.cat([r.reset for r in pieces])
    for n, length in enumerate(LENGTH):
        assert reset[:, n].tolist() == [t % length == 0 for t in range(10)]
    for r, start in zip(pieces, (0, 3, 4), strict=True):
        assert r.frames[r.index[0]].tolist() == [expected_frame(n, start) for n in range(3)]


def test_scores_are_raw_sums_in_the_order_of_their_ends(
    scripted: Callable, make_agent: Callable, play: Callable
) -> None:
    envs = scripted()
    episodes = play(envs, make_agent(envs), T).episodes
    # 1 step: 1; 3 steps: 1 + 2 + 3 = 6; 5 steps: 15. In 7 steps 7, 2 and 1 of them end.
    one, three, five = Episode("EI", 1.0, 1), Episode("EI", 6.0, 3), Episode("EI", 15.0, 5)
    assert episodes == [one, one, one, three, one, one, five, one, three, one]


def test_an_episode_is_its_policys_own_or_mixed(scripted: Callable, make_agent: Callable) -> None:
    """EI acts for 4 steps, E for 4, E again for 2."""
    envs = scripted()
    agent = make_agent(envs)
    carry, g = Carry.start(agent, 3), torch.Generator().manual_seed(0)
    rollouts = [collect(envs, agent, [p], steps, carry, g) for p, steps in (("EI", 4), ("E", 4), ("E", 2))]

    def who(k: int, length: int) -> list[str]:
        return [e.policy for e in rollouts[k].episodes if e.length == length]

    assert [who(k, 1) for k in range(3)] == [["EI"] * 4, ["E"] * 4, ["E"] * 2]
    # Three steps: the episode of steps 3-5 begins under EI and ends under E; that of 6-8 is E's, over the seam at 8.
    assert [who(k, 3) for k in range(3)] == [["EI"], [MIXED], ["E"]]
    # Five steps: 0-4 is mixed, 5-9 is E's.
    assert [who(k, 5) for k in range(3)] == [[], [MIXED], ["E"]]


def test_an_episode_that_starts_with_a_rollout_is_that_policys_own(scripted: Callable, make_agent: Callable) -> None:
    envs = scripted()
    agent = make_agent(envs)
    carry, g = Carry.start(agent, 3), torch.Generator().manual_seed(0)
    collect(envs, agent, ["EI"], 3, carry, g)  # the episode of three steps ends with this rollout
    rollout = collect(envs, agent, ["E"], 3, carry, g)
    assert [e.policy for e in rollout.episodes if e.length == 3] == ["E"]
    assert [e.policy for e in rollout.episodes if e.length == 5] == [MIXED]


def test_an_episode_with_another_policy_in_its_middle_is_mixed(scripted: Callable, make_agent: Callable) -> None:
    envs = scripted()
    agent = make_agent(envs)
    carry, g = Carry.start(agent, 3), torch.Generator().manual_seed(0)
    rollouts = [collect(envs, agent, [p], steps, carry, g) for p, steps in (("EI", 2), ("E", 1), ("EI", 2))]
    assert [e.policy for e in rollouts[2].episodes if e.length == 5] == [MIXED]


def test_log_prob_is_that_of_the_policy_that_acted(scripted: Callable, make_agent: Callable, play: Callable) -> None:
    for policy in ("E", "EI"):
        envs = scripted()
        agent = make_agent(envs)
        rollout = play(envs, agent, T, policy)
        h = agent.encode(rollout.frames[rollout.index.flatten()])
        log_p = agent.policies[policy](h).log_softmax(-1)
        expected = categorical.log_prob(log_p, rollout.action.flatten()).unflatten(0, (T, 3))
        torch.testing.assert_close(rollout.log_prob, expected)
        assert rollout.acted == (policy,) * 3


@pytest.mark.parametrize("end", ENDS)
def test_values_are_the_critics_words_on_the_true_frames(
    scripted: Callable, reading_agent: Callable, play: Callable, end: str
) -> None:
    envs = scripted(end=end)
    rollout = play(envs, reading_agent(envs, [100.0, 10.0, 1.0]), T)  # a value names its frame
    for n in range(3):
        for t in range(T):
            assert rollout.value["E__E"][t, n] == 100 * n + 10 * (t // LENGTH[n]) + t % LENGTH[n]
            assert rollout.next_value["E__E"][t, n] == rollout.value["E__E"][t, n] + 1  # never the next episode's


def slow_values(agent: Agent, frames: list[list[float]], critic: str) -> list[float]:
    """Values along one episode, by stepping the memory from zero."""
    state = agent.memory.start(1)
    out = []
    for frame in frames:
        h, state = agent.remember(agent.perceive(torch.tensor([frame])), state)
        out.append(agent.critics[critic](h).item())
    return out


@pytest.mark.parametrize("repeats", [False, True])
def test_with_a_memory_the_last_frames_value_comes_after_the_whole_episode(
    scripted: Callable, make_agent: Callable, play: Callable, repeats: bool
) -> None:
    envs = scripted(end="truncate")
    agent = make_agent(envs, "lstm")
    with torch.no_grad():
        rollout = play(envs, agent, T, repeats=repeats)
        for n, length in enumerate(LENGTH):
            for first in range(0, T, length):
                frames = [[float(n), float(first // length), float(k)] for k in range(length + 1)]
                values = slow_values(agent, frames, "E__EI")
                for k in range(min(length, T - first)):  # the last of them may be cut by the rollout's edge
                    assert rollout.value["E__EI"][first + k, n].item() == pytest.approx(values[k], abs=1e-6)
                    assert rollout.next_value["E__EI"][first + k, n].item() == pytest.approx(values[k + 1], abs=1e-6)


def test_the_memory_goes_on_into_the_next_rollout(scripted: Callable, make_agent: Callable, play: Callable) -> None:
    envs = scripted()
    agent = make_agent(envs, "lstm")
    whole = play(envs, agent, 6)
    envs = scripted()
    carry, g = Carry.start(agent, 3), torch.Generator().manual_seed(0)
    first, second = (collect(envs, agent, ["EI"], 3, carry, g) for _ in range(2))
    value = torch.cat([first.value["E__E"], second.value["E__E"]])
    torch.testing.assert_close(value, whole.value["E__E"])
    assert second.state[0].abs().max() > 0
    assert first.state[0].abs().max() == 0


@pytest.mark.parametrize("memory", ["none", "lstm"])
@pytest.mark.parametrize("end", ["terminate", "turns"])
def test_keeping_repeated_frames_once_changes_nothing_but_the_work(
    scripted: Callable, make_agent: Callable, play: Callable, memory: str, end: str
) -> None:
    pair = []
    for repeats in (False, True):
        envs = scripted(end=end, different=2)  # an episode's frames come back in the one after the next
        pair.append(play(envs, make_agent(envs, memory), 12, repeats=repeats))
    every, once = pair
    # Environments' distinct frames, in two kinds of episodes: 1 step has 2 frames, 3 have 4, 5 have 6: 2 * (2 + 4 + 6).
    assert len(once.frames) == 24
    assert len(every.frames) == 3 * 13 + int(every.done.sum())
    assert torch.equal(once.frames[once.index], every.frames[every.index])
    assert torch.equal(once.frames[once.next_index], every.frames[every.next_index])
    for name in ("action", "reset", "done", "terminated", "reward"):
        assert torch.equal(getattr(once, name), getattr(every, name))
    torch.testing.assert_close(once.log_prob, every.log_prob, rtol=0, atol=1e-5)
    for c in every.value:
        torch.testing.assert_close(once.value[c], every.value[c], rtol=0, atol=1e-5)
        torch.testing.assert_close(once.next_value[c], every.next_value[c], rtol=0, atol=1e-5)
    assert once.episodes == every.episodes


def test_actions_come_from_the_generator_alone(scripted: Callable, make_agent: Callable, play: Callable) -> None:
    actions = []
    for seed, noise in ((0, 1), (0, 2), (1, 1)):
        envs = scripted()
        agent = make_agent(envs)
        torch.manual_seed(noise)
        actions.append(play(envs, agent, 30, seed=seed).action)
    assert torch.equal(actions[0], actions[1])
    assert not torch.equal(actions[0], actions[2])
