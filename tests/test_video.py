"""Films of an agent that plays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import eipo
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
    assert len(shown) == 11  # of twelve steps the last already shows the next episode
    picture, below = shown[0][:864], shown[0][864:]
    assert picture.std() > 20
    assert (below > 200).any()  # words
    assert (below < 30).mean() > 0.8
    assert any(not np.array_equal(shown[0][864:], f[864:]) for f in shown)  # the step counts on


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
