"""Learn: the only place with gradients, and the only place that normalizes an advantage.

Shapes: T steps, B environments of a part (with a memory, parts are whole environments), or B samples (without one).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import gradients, parallel
from .bonuses import Bonus
from .config import PPO
from .core import ppo
from .errors import EipoError
from .methods import Targets
from .nets import LSTM, Agent, Outputs
from .rollout import Rollout


@dataclass(frozen=True)
class Part:
    """A part of a rollout: environments (columns of (T, N)) for an agent with a memory, else single samples."""

    index: Tensor
    columns: bool
    rows: int  # of the part in all processes of the run

    def take(self, x: Tensor) -> Tensor:
        """(T, N, ...) -> (T, B, ...) or (B, ...)."""
        return x[:, self.index] if self.columns else x.flatten(0, 1)[self.index]

    def split(self, n: int) -> list[Part]:
        return [Part(index, self.columns, self.rows) for index in self.index.chunk(n)]


def parts(agent: Agent, rollout: Rollout, count: int, generator: torch.Generator | None = None) -> list[Part]:
    """The rollout in `count` parts, shuffled if there is a generator to shuffle with."""
    columns = isinstance(agent.memory, LSTM)
    n, device = rollout.reward.shape[1], rollout.reward.device
    rows = n if columns else len(rollout)
    if generator is None:
        return [Part(i, columns, len(i)) for i in torch.arange(rows, device=device).tensor_split(count)]
    order = torch.randperm(rows * parallel.size(), generator=generator, device=device)
    return [Part(parallel.rows_here(i, n), columns, len(i)) for i in order.tensor_split(count)]


def read(
    agent: Agent, rollout: Rollout, part: Part, policies: Sequence[str], critics: Sequence[str], repeats: bool = False
) -> Outputs:
    """What the agent, as it is now, says about a part of a rollout."""
    index = part.take(rollout.index)
    if repeats:
        distinct, where = index.unique(return_inverse=True)
        x = F.embedding(where, agent.encode(rollout.seen(distinct)))
    else:
        x = agent.encode(rollout.seen(index.flatten())).unflatten(0, index.shape)
    if part.columns:
        x = agent.unroll(x, tuple(s[part.index] for s in rollout.state), part.take(rollout.reset))
    return agent.heads(x.float(), policies, critics)


@torch.no_grad()
def log_prob_now(agent: Agent, rollout: Rollout, policy: str, pieces: int = 4, repeats: bool = False) -> Tensor:
    """log pi(a_t | s_t) of a policy as it is now, on a rollout's actions, in the order of `parts`."""
    out = []
    for part in parts(agent, rollout, pieces):
        params = read(agent, rollout, part, [policy], [], repeats).policy[policy]
        out.append(agent.actions.log_prob(params, part.take(rollout.action)))
    joined = torch.cat(out, dim=1 if out[0].dim() == 2 else 0)
    return joined.reshape(rollout.reward.shape)


def like(p: Tensor, moment: Tensor) -> Tensor:
    """A moment of a parameter as the optimizer keeps it."""
    if p.shape != moment.shape:
        raise ValueError(f"a moment of shape {tuple(moment.shape)} for a parameter of shape {tuple(p.shape)}")
    return torch.empty_like(p, requires_grad=False).copy_(moment)


class Learner:
    """Optimizers and threads: what learning needs beside the agent and the data."""

    def __init__(
        self, agent: Agent, bonus: Bonus, ppo_config: PPO, bonus_lr: float, shards: int, repeats: bool
    ) -> None:
        self.agent, self.bonus, self.cfg, self.shards, self.repeats = agent, bonus, ppo_config, shards, repeats
        self.parameters = list(agent.parameters())
        self.optimizer = torch.optim.Adam(self.parameters, lr=ppo_config.lr, eps=1e-5, fused=True)
        # An optimizer of its own: a bonus network must not share a gradient norm with the policies.
        learned = [p for p in bonus.parameters() if p.requires_grad]
        self.bonus_optimizer = torch.optim.Adam(learned, lr=bonus_lr, eps=1e-5, fused=True) if learned else None
        self.gradients, self.bound = (gradients.apart, gradients.bound_apart) if ppo_config.clip_apart else (
            gradients.together, gradients.bound_together
        )  # fmt: skip
        self.pool = ThreadPoolExecutor(shards) if shards > 1 else None

    def state(self) -> dict[str, Any]:
        """Adam's moments and step counts, of every parameter in its order."""
        every = {"agent": self.optimizer, "bonus": self.bonus_optimizer}
        return {
            name: {str(i): dict(moments) for i, moments in optimizer.state_dict()["state"].items()}
            for name, optimizer in every.items()
            if optimizer is not None
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Put back what state() gave, in the memory layout of the parameters: it decides on the kernel, so on bits."""
        for name, optimizer in (("agent", self.optimizer), ("bonus", self.bonus_optimizer)):
            if optimizer is None:
                continue
            of = [p for group in optimizer.param_groups for p in group["params"]]
            known = {
                int(i): {k: like(of[int(i)], v) if k != "step" else v.clone() for k, v in moments.items()}
                for i, moments in state[name].items()
            }
            optimizer.load_state_dict({"state": known, "param_groups": optimizer.state_dict()["param_groups"]})

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    def update(
        self,
        rollout: Rollout,
        targets: Targets,
        returns: Mapping[str, Tensor],
        generator: torch.Generator,
        left: float = 1.0,
    ) -> dict[str, Tensor]:
        """All epochs over one rollout. `left` (1 to 0) is the share of learning rate and clip that annealing leaves."""
        advantage = {p: ppo.normalize(a) for p, a in targets.advantage.items()}
        for p, (weight, a) in targets.added.items():
            advantage[p] = advantage[p] + weight * ppo.normalize(a)
        advantage, returns = ({k: parallel.columns(x) for k, x in of.items()} for of in (advantage, returns))
        clip = self.cfg.clip * left
        for group in self.optimizer.param_groups:
            group["lr"] = self.cfg.lr * left
        logs: list[dict[str, Tensor]] = []
        for _ in range(self.cfg.epochs):
            for part in parts(self.agent, rollout, self.cfg.minibatches, generator):
                logs.append(self._step(rollout, part, advantage, returns, targets.kl_weight, clip))
                if self.bonus_optimizer is not None:
                    logs[-1] |= self._bonus_step(rollout, part, generator)
        means = parallel.means(logs)
        for name, value in means.items():
            if name.startswith(("loss_", "grad_norm")) and not value.isfinite():
                raise EipoError(f"{name} has become {value.item()}: learning has diverged; a smaller ppo.lr may help")
        return means

    def _step(
        self,
        rollout: Rollout,
        part: Part,
        advantage: Mapping[str, Tensor],
        returns: Mapping[str, Tensor],
        kl_weight: float,
        clip: float,
    ) -> dict[str, Tensor]:
        def work(shard: Part) -> tuple[list[Tensor], dict[str, Tensor]]:
            if len(shard.index) == 0:  # the minibatch is other processes'
                return [torch.zeros_like(p) for p in self.parameters] * (2 if self.cfg.clip_apart else 1), {}
            losses, log = self._losses(rollout, shard, advantage, returns, kl_weight, clip)
            share = len(shard.index) / part.rows
            grads = self.gradients([loss * share for loss in losses], self.parameters)
            return grads, {k: v.detach() * share for k, v in log.items()}

        if self.pool is None:
            grads, log = work(part)
        else:
            # Threads over pieces of the minibatch beat threads inside small products. Sums in a fixed order: same bits.
            done = list(self.pool.map(work, part.split(self.shards)))
            grads = [sum(gs[1:], gs[0]) for gs in zip(*(g for g, _ in done), strict=True)]
            log = {k: sum((piece[k] for _, piece in done[1:]), done[0][1][k]) for k in done[0][1]}
        norms = self.bound(parallel.added_up(grads), self.parameters, self.cfg.grad_norm)
        # Every process knows them whole, so each has a share in the sum.
        log |= {k: norm / parallel.size() for k, norm in norms.items()}
        self.optimizer.step()
        return log

    def _losses(
        self,
        rollout: Rollout,
        part: Part,
        advantage: Mapping[str, Tensor],
        returns: Mapping[str, Tensor],
        kl_weight: float,
        clip: float,
    ) -> tuple[tuple[Tensor, Tensor], dict[str, Tensor]]:
        """The policies' loss and the critics': clipped surrogate, entropy and DC's KL; squared errors."""
        out = read(self.agent, rollout, part, list(advantage), list(returns), self.repeats)
        action, acted = part.take(rollout.action), part.take(rollout.log_prob)
        of = self.agent.actions
        log: dict[str, Tensor] = {}
        loss = critics = acted.new_zeros(())
        for p, a in advantage.items():
            log_ratio = of.log_prob(out.policy[p], action) - acted
            log[f"loss_{p}"] = -ppo.clipped_surrogate(log_ratio, part.take(a), clip)
            log[f"entropy_{p}"] = of.entropy(out.policy[p]).mean()
            log[f"kl_{p}"] = ppo.kl_from_log_ratio(log_ratio.detach())
            log[f"clipped_{p}"] = (log_ratio.detach().exp().sub(1.0).abs() > clip).float().mean()
            loss = loss + log[f"loss_{p}"] - self.cfg.entropy * log[f"entropy_{p}"]
        for c, r in returns.items():
            log[f"loss_V_{c}"] = ppo.value_loss(out.value[c], part.take(r), part.take(rollout.own[c[3:]]))
            critics = critics + self.cfg.value * log[f"loss_V_{c}"]
        for p in [p for p in advantage if p != "EI" and "EI" in advantage]:
            # The other is a constant here: the mixed policy comes to it, not the other way round.
            log[f"kl_{p}_EI"] = of.kl(out.policy[p].detach(), out.policy["EI"]).mean()
            if kl_weight:
                loss = loss + kl_weight * log[f"kl_{p}_EI"]
        return (loss, critics), log

    def _bonus_step(self, rollout: Rollout, part: Part, generator: torch.Generator) -> dict[str, Tensor]:
        assert self.bonus_optimizer is not None
        loss = self.bonus.loss(rollout, part.take, generator)
        if loss is None:
            return {}
        self.bonus_optimizer.zero_grad()
        loss.backward()
        parallel.add_gradients(self.bonus.parameters())
        self.bonus_optimizer.step()
        return {"loss_bonus": loss.detach()}
