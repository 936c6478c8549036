"""Everything that a run can be told, as frozen dataclasses. Presets (presets.py) are values of these."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from typing_extensions import Doc

from .errors import EipoError, unknown
from .parsing import literal, parse

BONUSES = {
    "rnd": "random network distillation: how badly a trained network predicts a fixed random one at the next frame",
    "icm": "intrinsic curiosity: how badly the next frame's features are foreseen from this one's and the action",
    "e3b": "elliptical episodic bonus: how far the next frame's features are from those of the episode so far",
    "counts": "1 / sqrt(times that the episode has seen the next frame); for observations that repeat exactly",
    "none": "no second reward",
}
OWN_BONUSES = {
    "info:KEY": "a number in the info of each step: a shaping term that the environment computes itself",
    "module:Class": "your own, derived from eipo.Bonus (docs/bonuses.md)",
}


@dataclass(frozen=True)
class Method:
    """The update rule and its numbers."""

    rule: Annotated[Literal["single", "decoupled", "eipo", "hepo"], Doc("which class of methods.py")] = "eipo"
    policy: Annotated[
        Literal["E", "EI"], Doc("rule single: climb the task reward alone (E) or task plus bonus (EI)")
    ] = "EI"
    normalize_task: Annotated[bool, Doc("divide the task reward by the running std of its discounted sum (EN)")] = True
    lam: Annotated[float, Doc("weight of the (normalized) bonus; where it decays, the weight at the start")] = 1.0
    lam_min: Annotated[float, Doc("weight of the bonus when its decay is over")] = 1.0
    lam_decay: Annotated[
        float, Doc("share of the iterations over which lam falls linearly to lam_min; 0: it stays")
    ] = 0.0
    kl_weight: Annotated[float, Doc("rule decoupled: weight of KL(pi_E || pi_EI) in pi_EI's loss")] = 1.0
    alpha: Annotated[float, Doc("rules eipo and hepo: the multiplier at the start")] = 0.5
    beta: Annotated[float, Doc("rules eipo and hepo: step size of alpha")] = 0.005
    alpha_clip: Annotated[float, Doc("rules eipo and hepo: bound on alpha's derivative")] = 0.05
    alpha_rule: Annotated[
        Literal["paper", "every_max", "observed", "fixed"],
        Doc(
            "rule eipo: when and on what alpha steps. paper: on the surrogate gap when a max stage ends; every_max: "
            "after every max iteration; observed: when a max stage ends, on the difference of the task reward a step "
            "that each policy earned when it acted last; fixed: never"
        ),
    ] = "paper"
    switch: Annotated[
        Literal["paper", "own", "alternate"],
        Doc(
            "rule eipo: when stages alternate. paper: J against the iteration before, whichever stage that was; own: "
            "against the same stage's own last value, none on entering; alternate: after every iteration"
        ),
    ] = "paper"


@dataclass(frozen=True)
class Bonus:
    """The second reward."""

    name: Annotated[str, Doc("rnd, icm, e3b, counts, none, info:KEY, or module:Class; as --bonus")] = "rnd"
    share: Annotated[float, Doc("share of the samples that train the bonus")] = 0.25
    window: Annotated[
        int,
        Doc("steps of all environments that the bonus' running scale remembers, older ones fading; 0: the whole run"),
    ] = 0
    episodic: Annotated[
        bool, Doc("an episode's end ends the bonus' return; false: it runs on into the next episode, as RND's does")
    ] = True
    lr: Annotated[float, Doc("learning rate of the bonus")] = 1e-4
    features: Annotated[int, Doc("width of the bonus network's dense layers and of its output")] = 512


@dataclass(frozen=True)
class Net:
    """The policy and value network: an encoder, a memory, linear heads."""

    convs: Annotated[
        Literal["paper", "nature"], Doc("convolutions for images: the paper's two, or the Nature DQN's three")
    ] = "paper"
    dense: Annotated[int, Doc("width of the dense layer(s) of the encoder")] = 512
    layers: Annotated[int, Doc("dense layers of the encoder; for images they follow the convolutions")] = 1
    normalize: Annotated[
        bool, Doc("divide what is seen by its running std, less its running mean; both are kept with the agent")
    ] = False
    memory: Annotated[Literal["none", "lstm"], Doc("what is remembered between steps")] = "lstm"
    width: Annotated[int, Doc("width of the memory")] = 512
    noisy: Annotated[float, Doc("noise in the heads' weights at the start, times 1 / sqrt(inputs); 0: none")] = 0.0


@dataclass(frozen=True)
class PPO:
    """Optimization."""

    epochs: Annotated[int, Doc("passes over a rollout")] = 4
    minibatches: Annotated[int, Doc("minibatches a pass; with a memory they take whole environments")] = 4
    clip: Annotated[float, Doc("clipping range of the probability ratio")] = 0.1
    lr: Annotated[float, Doc("learning rate of policies and critics (Adam)")] = 1e-4
    entropy: Annotated[float, Doc("weight of each policy's entropy")] = 0.001
    value: Annotated[float, Doc("weight of each critic's loss")] = 1.0
    grad_norm: Annotated[float, Doc("bound on the gradient's norm")] = 1.0
    clip_apart: Annotated[
        bool,
        Doc(
            "bound the critics' gradient by the norm of the policies', so that no critic's loss, however large, drowns "
            "them in the network that they share; costs a second backward pass. false: one bound on the norm of all"
        ),
    ] = False
    gamma: Annotated[float, Doc("discount")] = 0.99
    gae_lambda: Annotated[float, Doc("lambda of the generalized advantages")] = 0.95
    anneal: Annotated[bool, Doc("let learning rate and clip fall linearly to 0 over the run")] = False


@dataclass(frozen=True)
class Envs:
    """The worlds that a run acts in."""

    num: Annotated[int, Doc("environments stepped at once")] = 128
    steps: Annotated[int, Doc("steps of each environment an iteration")] = 128
    options: Annotated[
        dict[str, Any], Doc("keyword arguments of the environment, as --set envs.options.NAME=VALUE")
    ] = field(default_factory=dict)
    vector: Annotated[
        Literal["auto", "sync", "async", "threads"],
        Doc(
            "how environments are stepped: one after the other (sync), a process each (async), in threads. auto: the "
            "environment's own vector form, threads for MuJoCo, else sync"
        ),
    ] = "auto"
    timeout: Annotated[float, Doc("vector async: seconds after which a worker that does not answer is an error")] = 60.0
    keys: Annotated[str, Doc("parts of a Dict observation that are seen, as image,direction; empty: all")] = ""
    stack: Annotated[int, Doc("frames of an episode that a network sees at once; each is kept once")] = 1
    clip_reward: Annotated[bool, Doc("learn from the sign of the task reward; reported scores are never clipped")] = (
        False
    )
    repeats: Annotated[
        bool, Doc("frames repeat (grid worlds): keep and encode each distinct frame once; same result, less work")
    ] = False


@dataclass(frozen=True)
class Compute:
    """How the arithmetic is done."""

    threads: Annotated[int, Doc("CPU threads of the run; 0: all cores")] = 0
    shards: Annotated[
        int, Doc("split each minibatch over this many threads (small networks gain); 1: leave it to torch")
    ] = 1
    precision: Annotated[
        Literal["auto", "fp32", "bf16"],
        Doc("of encoder and memory; heads and losses are always fp32. auto: bf16 where the machine multiplies it"),
    ] = "auto"
    compile: Annotated[
        bool, Doc("compile encoder and bonus with torch.compile; needs a C++ compiler, and minutes at the start")
    ] = False
    device: Annotated[
        Literal["auto", "cpu", "cuda"], Doc("where the networks are; auto: a CUDA device if there is one")
    ] = "auto"


@dataclass(frozen=True)
class Checkpoint:
    """What is kept of a run while it goes on, so that it can go on after a stop."""

    minutes: Annotated[float, Doc("minutes between checkpoints; 0: after every iteration")] = 10.0
    last: Annotated[int, Doc("checkpoints that are kept")] = 2


@dataclass(frozen=True)
class Evaluation:
    """Playing with the agent while it learns, in environments of its own."""

    every: Annotated[int, Doc("iterations between evaluations of each policy; 0: none")] = 0
    episodes: Annotated[int, Doc("episodes of each evaluation")] = 16


@dataclass(frozen=True)
class Track:
    """Where a run can be watched while it goes. What shows it can never stop it."""

    live: Annotated[
        Literal["tensorboard", "wandb", "trackio", "none"],
        Doc("what shows metrics as they come; wandb and trackio are extras (pip install 'eipo[wandb]')"),
    ] = "tensorboard"


@dataclass(frozen=True)
class Config:
    """A run, whole."""

    env: Annotated[str, Doc("id of the Gymnasium environment")]
    steps: Annotated[int, Doc("environment steps to train for")]
    seed: Annotated[int, Doc("seed of every generator of the run")] = 0
    method_name: Annotated[str, Doc("name of the method")] = "eipo"
    preset: Annotated[str, Doc("name of the preset")] = ""
    method: Method = Method()
    bonus: Bonus = Bonus()
    net: Net = Net()
    ppo: PPO = PPO()
    envs: Envs = field(default_factory=Envs)
    compute: Compute = Compute()
    checkpoint: Checkpoint = Checkpoint()
    evaluation: Evaluation = Evaluation()
    track: Track = Track()

    @property
    def steps_per_iteration(self) -> int:
        """Environment steps of one rollout."""
        return self.envs.num * self.envs.steps

    @property
    def iterations(self) -> int:
        """Whole rollouts that fit into the run's steps."""
        return self.steps // self.steps_per_iteration


def settings(cls: type = Config, prefix: str = "") -> dict[str, tuple[Any, str]]:
    """Every key that --set takes: {key: (type, help)}."""
    found: dict[str, tuple[Any, str]] = {}
    hints = typing.get_type_hints(cls, include_extras=True)
    for f in dataclasses.fields(cls):
        hint = hints[f.name]
        if dataclasses.is_dataclass(hint):
            found.update(settings(typing.cast(type, hint), f"{prefix}{f.name}."))
        elif prefix:  # the run's own fields (env, steps, ...) have options of their own
            doc = next(d.documentation for d in hint.__metadata__ if isinstance(d, Doc))
            found[prefix + f.name] = (hint.__origin__, doc)
    return found


def with_settings(config: Config, assignments: typing.Iterable[str] | typing.Mapping[str, Any]) -> Config:
    """The configuration with `key=value` strings, or {key: value}, applied; an unknown key names the nearest."""
    known = settings()
    if not isinstance(assignments, typing.Mapping):
        pairs = []
        for text in assignments:
            key, sign, value = text.partition("=")
            if not sign:
                raise EipoError(f"--set takes key=value, got {text!r}")
            pairs.append((key.strip(), value.strip()))
    else:
        pairs = list(assignments.items())
    for key, value in pairs:
        if key.startswith("envs.options.") and len(key) > len("envs.options."):
            options = {**config.envs.options, key[len("envs.options.") :]: literal(value)}
            config = dataclasses.replace(config, envs=dataclasses.replace(config.envs, options=options))
            continue
        if key not in known:
            raise unknown("setting", key, known)
        section, name = key.split(".")
        new = dataclasses.replace(getattr(config, section), **{name: parse(key, known[key][0], value)})
        config = dataclasses.replace(config, **{section: new})
    return config


def check(config: Config) -> None:
    """Refuse what cannot train, each with one line."""
    e, p, b, m = config.envs, config.ppo, config.bonus, config.method
    if b.name not in BONUSES and not all(b.name.partition(":")):
        raise unknown("bonus", b.name, BONUSES)
    for key, number, least in [
        ("seed", config.seed, 0), ("envs.num", e.num, 1), ("envs.steps", e.steps, 1), ("ppo.epochs", p.epochs, 1),
        ("ppo.minibatches", p.minibatches, 1), ("compute.shards", config.compute.shards, 1),
        ("compute.threads", config.compute.threads, 0), ("envs.stack", e.stack, 1), ("net.dense", config.net.dense, 1),
        ("net.layers", config.net.layers, 0), ("net.width", config.net.width, 1), ("bonus.features", b.features, 1),
        ("bonus.window", b.window, 0),
        ("checkpoint.last", config.checkpoint.last, 1), ("evaluation.every", config.evaluation.every, 0),
        ("evaluation.episodes", config.evaluation.episodes, 1),
    ]:  # fmt: skip
        if number < least:
            raise EipoError(f"{key}={number}: must be at least {least}")
    for key, value, low, high in [
        ("ppo.gamma", p.gamma, 0.0, 1.0), ("ppo.gae_lambda", p.gae_lambda, 0.0, 1.0), ("ppo.clip", p.clip, 0.0, 1.0),
        ("bonus.share", b.share, 0.0, 1.0), ("method.lam_decay", m.lam_decay, 0.0, 1.0),
    ]:  # fmt: skip
        if not low <= value <= high:
            raise EipoError(f"{key}={value}: must lie between {low:g} and {high:g}")
    for key, value in [
        ("ppo.lr", p.lr), ("ppo.grad_norm", p.grad_norm), ("bonus.lr", b.lr), ("ppo.entropy", p.entropy),
        ("ppo.value", p.value), ("method.lam", m.lam), ("method.lam_min", m.lam_min), ("method.alpha", m.alpha),
        ("envs.timeout", e.timeout), ("method.beta", m.beta), ("method.alpha_clip", m.alpha_clip),
        ("method.kl_weight", m.kl_weight),
        ("net.noisy", config.net.noisy),
        ("checkpoint.minutes", config.checkpoint.minutes),
    ]:  # fmt: skip
        if not 0.0 <= value < float("inf"):
            raise EipoError(f"{key}={value}: must be a finite number, 0 or more")
    if e.stack > 1 and e.repeats:
        raise EipoError("envs.stack with envs.repeats: a repeated frame has no history of its own; use one of them")
    if config.steps < config.steps_per_iteration:
        raise EipoError(
            f"steps={config.steps} is below one iteration of {e.num} environments x {e.steps} steps = "
            f"{config.steps_per_iteration}; ask for more steps, or for fewer with --set envs.num=... or envs.steps=..."
        )
    if m.rule == "hepo" and e.num < 2:
        raise EipoError(f"envs.num={e.num}: hepo needs 2 environments at least, one for each of its policies")
    rows = e.num if config.net.memory == "lstm" else config.steps_per_iteration
    if rows < p.minibatches:
        raise EipoError(f"ppo.minibatches={p.minibatches} is more than the {rows} rows there are to split")
