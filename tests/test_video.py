"""Films of an agent that plays."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest

import eipo
from eipo import video
from eipo.errors import EipoError
from eipo.video import caption, captioned

imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
SMALL = {
    "envs.num": 4, "envs.steps": 8, "net.dense": 8, "net.width": 8, "bonus.features": 8, "compute.threads": 1,
    "compute.shards": 1, "ppo.minibatches": 1, "ppo.epochs": 1,
}  # fmt: skip


def frames(path: Path) -> tuple[dict, list[np.ndarray]]:
    reader = imageio_ffmpeg.read_frames(str(path))
    about = next(reader)
    width, height = about["size"]
    return about, [np.frombuffer(f, np.uint8).reshape(height, width, 3) for f in reader]


def test_the_maze_with_what_is_known_below_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    more = {"envs.options.max_episode_steps": 12}
    eipo.train("eipo/Maze-v0", steps=32, settings=SMALL | more, out=run)
    eipo.evaluate(run, episodes=1, policy="EI", video=tmp_path / "new" / "x.mp4")
    about, shown = frames(tmp_path / "new" / "x.mp4")
    assert about["codec"] == "h264"
    assert len(shown) == 12
    picture, below = shown[0][:864], shown[0][864:]
    assert picture.std() > 20
    assert (below > 200).any()  # words
    assert (below < 30).mean() > 0.8
    assert any(not np.array_equal(shown[0][864:], f[864:]) for f in shown)  # the step counts on


class Goal(gym.Env[np.ndarray, int]):
    """The last of `length` steps is rewarded. The picture is 100 darker in each episode, and 50 in each step."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}  # type: ignore[misc]
    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)
    episode = -1

    def __init__(self, render_mode: str | None = None, length: int = 2) -> None:
        self.render_mode, self.length = render_mode, length

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.at = self.episode + 1, 0
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.at += 1
        return np.zeros(1, np.float32), float(self.at == self.length), self.at == self.length, False, {}

    def render(self) -> np.ndarray:  # type: ignore[override]
        return np.full((480, 480, 3), 250 - 100 * self.episode - 50 * self.at, np.uint8)


@pytest.mark.parametrize("length", [1, 2])
def test_the_last_line_has_the_whole_return(length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the reward comes with the episode's end, after which only the next one can be drawn."""
    said: list[str] = []
    monkeypatch.setattr(video, "caption", lambda *args: said.append(caption(*args)) or said[-1])
    config = {"envs.options.length": length}
    run = eipo.train(Goal, method="eo", steps=32, settings=SMALL | config, out=tmp_path / "run")
    assert run.out is not None
    eipo.evaluate(run.out, episodes=1, video=tmp_path / "x.mp4", factory=Goal)
    assert said == [f"return {int(t == length)}   step {t}   acts: E (task)" for t in range(1, length + 1)]
    _, shown = frames(tmp_path / "x.mp4")
    assert len(shown) == length
    if length == 2:  # both times the picture after the first step, 250 - 50, and not the next episode's, 250 - 100
        assert all(abs(f[:480].mean() - 200) < 10 for f in shown)


def test_atari_as_people_see_it(tmp_path: Path) -> None:
    pytest.importorskip("ale_py")
    run = tmp_path / "run"
    more = {"envs.num": 2, "envs.options.max_num_frames_per_episode": 80}
    eipo.train("ALE/Breakout-v5", preset="atari-ff", method="eo", steps=16, settings=SMALL | more, out=run)
    eipo.evaluate(run, episodes=1, video=tmp_path / "x.mp4")
    _, shown = frames(tmp_path / "x.mp4")
    assert len(shown) > 5
    colours = shown[0][:630].reshape(-1, 3).astype(int)
    assert (abs(colours[:, 0] - colours[:, 2]) > 60).mean() > 0.01  # Breakout's bricks are no grays


def test_the_line_says_return_step_alpha_and_who_acts() -> None:
    assert caption(3.0, 12, 0.4987, "EI") == "return 3   step 12   alpha 0.499   acts: EI (task + bonus)"
    assert caption(-0.5, 1, None, "E") == "return -0.5   step 1   acts: E (task)"


@pytest.mark.parametrize("shape", [(84, 84), (210, 160), (400, 600), (1000, 30)])
def test_any_picture_becomes_one_that_the_codec_takes(shape: tuple[int, int]) -> None:
    large = captioned(np.full((*shape, 3), 200, np.uint8), "text")
    assert large.shape[0] % 16 == large.shape[1] % 16 == 0
    assert large.shape[0] >= 480
    assert (large == 200).all(-1).sum() >= shape[0] * shape[1]


def test_what_cannot_be_filmed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    eipo.train("eipo-test/Context-v0", method="eo", steps=32, settings=SMALL, out=run)
    with pytest.raises(EipoError, match=r"x.gif: a video is an .mp4"):
        eipo.evaluate(run, episodes=1, video=tmp_path / "x.gif")
    with pytest.raises(EipoError, match="render_mode"):
        eipo.evaluate(run, episodes=1, video=tmp_path / "x.mp4")
    assert not (tmp_path / "x.mp4").exists()
