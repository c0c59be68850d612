"""What the sections share: sizes, the model on its device, findings, and a clock that knows how much time is left."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from accelerate import Accelerator

from benchmarks import made
from benchmarks.memory import resident
from datpo.core.tree import RolloutTree
from datpo.learn.minibatch import CreditedTree
from datpo.learn.policy import Policy
from datpo.learn.update import Learner, UpdateSettings
from datpo.methods.base import Method

GB = 1e9
SHAPES = {13: (1, 3, 4), 52: (4, 3, 4), 200: (4, 7, 7)}  # leaves -> base rollouts, forks of each, branches of each


@dataclass(frozen=True)
class Finding:
    """A line of the table.

    Attributes:
        what: is measured.
        value: what came out, in `unit`; None where nothing could be measured.
        against: what it is held against, in words.
        verdict: "yes" or "NO" where there is something to hold it against, "error", "skipped", or "".
        note: what else is to be known, such as the error.
    """

    what: str
    value: float | None = None
    unit: str = ""
    against: str = ""
    verdict: str = ""
    note: str = ""


def held(what: str, value: float, most: float, unit: str = "", note: str = "") -> Finding:
    """Something that is to be no more than a limit; what is no number is more."""
    return Finding(what, value, unit, f"<= {most:.3g}", "yes" if value <= most else "NO", note)


def failed(what: str, error: Exception) -> Finding:
    """An error as a line."""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return Finding(what, verdict="error", note=words[:300])


def tried(what: str, found: Callable[[], Finding]) -> Finding:
    """What is found, or the error in its place; what follows then has the memory back."""
    try:
        return found()
    except TimeoutError:  # the end of it all, not of this line
        raise
    except Exception as error:
        line = failed(what, error)
    gc.collect()
    torch.cuda.empty_cache()
    return line


@dataclass(frozen=True)
class Scale:
    """How big everything is.

    Attributes:
        size: of the model.
        prompts, lengths: tokens of prompts and of whole responses, from and to.
        leaves: of the trees whose attention is timed.
        dense_up_to: tokens of a tree that a dense mask is tried for.
        trees: of the update and of the whole step.
        token_budget, logit_budget: of a pack, of a chunk of logits.
        batches: rows sampled side by side, the last of them for branches.
        new_tokens: of every sampled row; random weights hardly ever draw an end token.
        repeats: of a timed piece of work, after one that is not timed.
    """

    size: made.Size
    prompts: tuple[int, int]
    lengths: tuple[int, int]
    leaves: tuple[int, ...]
    dense_up_to: int
    trees: int
    token_budget: int
    logit_budget: int
    batches: tuple[int, ...]
    new_tokens: int
    repeats: int


# Budgets are those of config/scales/paper.yaml, its numbers of rows are among the batches.
SCALES = {
    "qwen2.5-3b": Scale(
        size=made.QWEN_3B,
        prompts=(120, 200),
        lengths=(300, 1024),
        leaves=(13, 52, 200),
        dense_up_to=10_000,
        trees=4,
        token_budget=8192,
        logit_budget=2**27,
        batches=(16, 96, 384),
        new_tokens=128,
        repeats=3,
    ),
    "small": Scale(
        size=made.Size("small", 64, 2, 2, 1, 96, 320),
        prompts=(8, 12),
        lengths=(24, 40),
        leaves=(13,),
        dense_up_to=10_000,
        trees=2,
        token_budget=400,
        logit_budget=2**16,
        batches=(4, 8),
        new_tokens=16,
        repeats=1,
    ),
}


class Bench:
    """A scale on a device, its model with optimiser once they are asked for, and the time that is left."""

    def __init__(self, scale: Scale, minutes: float, device: str | None = None) -> None:
        self.scale = scale
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.on_gpu = self.device.type == "cuda"
        self.began, self.seconds = time.monotonic(), 60 * minutes
        # On a CPU the small model is run in float32: what is told there is whether everything works.
        self.precision = "bfloat16" if self.on_gpu else "float32"
        self.accelerator = Accelerator(mixed_precision="bf16" if self.on_gpu else "no")
        self.rates: dict[str, float] = {}  # seconds for each unit of work, by the sections that measured them

    @property
    def spent(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self.seconds - self.spent

    @cached_property
    def policy(self) -> Policy:
        """The model, random; layers are computed again in the backward pass.

        Its biases are drawn too, as large as what they are added to: Qwen2.5's count, those of a new model are zero.
        """
        policy = made.policy(self.scale.size, self.device)
        for name, weight in policy.model.named_parameters():
            if name.endswith(".bias"):
                torch.nn.init.normal_(weight)
        policy.recompute_layers()
        return policy

    @cached_property
    def learner(self) -> Learner:
        """The model with AdamW."""
        optimizer = torch.optim.AdamW(self.policy.model.parameters(), 1e-6, fused=self.on_gpu)
        return Learner(self.policy, optimizer, self.accelerator)

    @property
    def settings(self) -> UpdateSettings:
        """One pass over random units, as the paper's mini-batches."""
        return UpdateSettings(
            epochs=1,
            minibatch="units",
            minibatch_size=64,
            gradient_clip=1.0,
            token_budget=self.scale.token_budget,
            logit_budget=self.scale.logit_budget,
            temperature=1.0,
            max_new_tokens=self.scale.lengths[1],
        )

    def tree(self, leaves: int, rng: np.random.Generator, shorter: int = 1) -> RolloutTree:
        """A made tree that was sampled, so it says, by a policy that knows nothing: the ratio is near 1."""
        scale = self.scale
        prompt, (least, most) = int(rng.integers(*scale.prompts)), scale.lengths
        grown = made.tree(*SHAPES[leaves], prompt, (least // shorter, most // shorter), rng, scale.size.vocabulary)
        blind = -np.log(scale.size.vocabulary)
        branches = [replace(branch, logprobs=np.full(len(branch.tokens), blind)) for branch in grown.branches]
        return replace(grown, branches=tuple(branches))

    def credits(self, method: Method, count: int, leaves: int = 52) -> list[CreditedTree]:
        """Made trees with random advantages; the same each time."""
        rng = np.random.default_rng(0)
        return made.with_credit(method, [self.tree(leaves, rng) for _ in range(count)], rng)

    def timed(self, work: Callable[[], object]) -> float:
        """Seconds on the clock until the device is done."""
        self.wait()
        before = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - before

    def median(self, work: Callable[[], object]) -> float:
        """The same, the median of some repeats after one that is not timed."""
        work()
        return float(np.median([self.timed(work) for _ in range(self.scale.repeats)]))

    def wait(self) -> None:
        """Until the device has done what it was given."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def forget_peak(self) -> None:
        """Count the peak of memory anew."""
        if self.on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak(self) -> float:
        """Bytes at the highest point: of tensors on the GPU, or of the process since it began."""
        return float(torch.cuda.max_memory_allocated(self.device) if self.on_gpu else resident("VmHWM"))
