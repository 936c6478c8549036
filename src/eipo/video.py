"""An episode as an mp4, with what the agent has earned and who acts written below the picture. Extra `video`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont  # matplotlib brings it

from .envs import atari
from .envs.batch import Batch, Step
from .envs.find import find
from .envs.make import Factory
from .errors import EipoError

if TYPE_CHECKING:
    from .sharing import FoundAgent

FPS = 15  # Atari: 60 frames a second, of which an agent's step is four
HEIGHT, BAR = 480, 32  # pixels of the picture, at least, and of the line below it
NAMES = {"E": "E (task)", "EI": "EI (task + bonus)", "I": "I (bonus)"}


class Mirrored(Batch):
    """Games that are played twice, from the same seeds: as the agent sees them, and as people do."""

    def __init__(self, envs: Batch, screen: Batch) -> None:
        self.__dict__.update(envs.__dict__)
        self.screen = screen

    def reset(self, seed: int) -> np.ndarray:
        self.screen.reset(seed)
        return super().reset(seed)

    def step(self, action: np.ndarray) -> Step:
        self.screen.step(action)
        return super().step(action)

    def close(self) -> None:
        self.screen.close()
        super().close()


def film(
    found: FoundAgent, policy: str, seed: int, deterministic: bool, path: Path, factory: Factory | None = None
) -> None:
    """Play one episode into a file."""
    from .evaluation import play

    if path.suffix != ".mp4":
        raise EipoError(f"{path}: a video is an .mp4")
    envs, picture = _with_pictures(found, factory)
    try:
        with _writer(path, int(envs.venv.metadata.get("render_fps", FPS))) as write:
            steps, last = 0, None

            def watch(score: np.ndarray, step: Step) -> None:
                nonlocal steps, last
                steps += 1
                if last is None or not step.over[0]:
                    last = picture()
                # When it is over, what could be drawn is the next episode's start: the picture before, and the return.
                write(captioned(last, caption(float(score[0]), steps, found.alpha, policy)))

            play(found.agent, envs, 1, policy, seed, deterministic, watch)
    finally:
        envs.close()


def _with_pictures(found: FoundAgent, factory: Factory | None) -> tuple[Batch, Callable[[], np.ndarray]]:
    """One environment, and how to get its picture (H, W, 3)."""
    from .evaluation import environments

    config = found.config
    if factory is None and find(config.env).vector_entry_point == atari.ENTRY:
        screen = environments(config, 1, grayscale=False, img_height=210, img_width=160)
        return Mirrored(environments(config, 1), screen), lambda: screen.obs[0]
    envs = environments(config, 1, factory, render_mode="rgb_array")

    def picture() -> np.ndarray:
        shown = envs.venv.render()
        frame = None if shown is None else np.asarray(shown[0])
        if frame is None or frame.ndim != 3:
            raise EipoError(f"{config.env} draws no picture (render_mode rgb_array), so there can be no video")
        return frame

    return envs, picture


@contextlib.contextmanager
def _writer(path: Path, fps: int) -> Iterator[Callable[[np.ndarray], None]]:
    """Frames into an mp4, which is there when all have been written."""
    try:
        import imageio_ffmpeg
    except ImportError as e:
        raise EipoError(f"a video needs a package that is missing: pip install 'eipo[video]' ({e})") from e
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}")  # ends as the video, since ffmpeg goes by that
    sink: Any = None

    def write(frame: np.ndarray) -> None:
        nonlocal sink
        if sink is None:
            size = frame.shape[1], frame.shape[0]
            sink = imageio_ffmpeg.write_frames(str(aside), size, fps=fps, quality=7, ffmpeg_log_level="error")
            sink.send(None)
        sink.send(np.ascontiguousarray(frame))

    try:
        yield write
        if sink is not None:
            sink.close()
            os.replace(aside, path)
    finally:
        if sink is not None:
            sink.close()
        aside.unlink(missing_ok=True)


def caption(score: float, step: int, alpha: float | None, policy: str) -> str:
    """The line below the picture."""
    parts = [f"return {score:g}", f"step {step}"]
    parts += [f"alpha {alpha:.3f}"] if alpha is not None else []
    return "   ".join([*parts, f"acts: {NAMES.get(policy, policy)}"])


def captioned(picture: np.ndarray, text: str) -> np.ndarray:
    """(H, W, 3) enlarged by a whole number, with a line below; sides are multiples of 16, as the codec wants them."""
    times = max(1, -(-HEIGHT // picture.shape[0]))
    large = picture.repeat(times, 0).repeat(times, 1)
    height, width = large.shape[0] + BAR, max(large.shape[1], 480)
    image = Image.new("RGB", (-(-width // 16) * 16, -(-height // 16) * 16))
    image.paste(Image.fromarray(large), ((image.width - large.shape[1]) // 2, 0))
    ImageDraw.Draw(image).text((8, large.shape[0] + 8), text, fill=(255, 255, 255), font=ImageFont.load_default(16))
    return np.asarray(image)
