"""Peak memory of a job on its device, by part.

In a training there stand all the time: weights in float32, AdamW's moments, and the model that measures diversity. On
top of it come by turns the rollout (in mixed precision a copy of the weights; keys and values of the rows side by side;
their logits) and the update (gradients, copies of weights as they are needed, activations of one pack, logits of one
chunk). The peak is what stands and the larger of the two; fragments and the libraries' own buffers come to a few more
per cent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from datpo.plan.sizes import Size

BYTES = {"float32": 4, "bfloat16": 2}
FULL = 4  # bytes of a float32 number: masters, moments, gradients, the residual stream

# Bytes for each logit at its highest point, beside the product itself, which has the weights' precision.
# Update: float32, divided by the temperature, log-softmax (datpo.learn.loss).
UPDATE_LOGIT = 12
# Sampling: the first three, probabilities, and twice in float64, summed up too (datpo.engines.hf.draw).
SAMPLED_LOGIT = 36
# Sampling by vLLM: float32, divided by the temperature, probabilities. Scoring what it drew: the first two,
# log-softmax, and two on the way to entropies (datpo.learn.exact).
SERVED_LOGIT = 12
SCORED_LOGIT = 20
# What vLLM leaves alone and takes on a GPU, as datpo.engines has it: bytes that moments and a copy of the head have for
# each parameter, bytes of its compiled steps, and the share of the rest that keys and values get.
MOMENTS, HEAD_COPY = 8, 2
GRAPHS = 2 << 30
PAGED_SHARE = 0.8
# Rows leave a batch when a fifth has ended: then the old cache and a copy of four fifths exist together.
LEAVING = 0.8
# Of a weight whose gradient is being made in mixed precision: the gradient, and the same in float32 on its way to where
# it is added up.
GRADIENT_COPIES = 2 + FULL
# Keys and values are gathered once for each path through a pack, so a shared one stands there more than once.
GATHERED = 2.0


@dataclass(frozen=True)
class Memory:
    """Bytes of a job by part.

    Attributes:
        masters, gradients: float32; gradients stand in an update alone. Of a job that does not train the masters are
            the policy itself, where it scores what another engine draws from a copy.
        moments: AdamW's two.
        embedder: the model that diversity is measured with.
        weights: as they are sampled with; in a training in mixed precision copies of the masters.
        cache: keys and values of all rows side by side, and a smaller copy of them while rows leave.
        kept: keys and values of base rollouts that wait to be forked.
        sampling: logits of one new token of every row, on the way to a draw.
        copies: of weights in an update in mixed precision: all at once, or a layer's or the head's at a time where
            activations are computed again; and of the largest gradient.
        activations: of a pack: every layer's, or its input and all of one layer at a time.
        logits: of one chunk in the update.
        rows: sequences side by side that this is reckoned with.
        tokens: of a pack that this is reckoned with.
        spared: what vLLM finds taken, or leaves for others, when it starts; None of another engine.
    """

    weights: float
    masters: float = 0.0
    moments: float = 0.0
    gradients: float = 0.0
    embedder: float = 0.0
    cache: float = 0.0
    kept: float = 0.0
    sampling: float = 0.0
    copies: float = 0.0
    activations: float = 0.0
    logits: float = 0.0
    rows: int = 0
    tokens: int = 0
    spared: float | None = None

    @property
    def standing(self) -> float:
        """What is there all the time."""
        return self.masters + self.moments + self.embedder

    @property
    def rollout(self) -> float:
        """What sampling adds."""
        return self.weights + self.cache + self.kept + self.sampling

    @property
    def update(self) -> float:
        """What an update adds."""
        return self.gradients + self.copies + self.activations + self.logits

    @property
    def peak(self) -> float:
        """The most at any time."""
        return self.standing + max(self.rollout, self.update)

    def room(self, device: float) -> Room:
        """The largest settings with which the job fits into so many bytes."""
        free = device - self.standing
        grown = self.cache + self.sampling
        row = grown / self.rows if self.rows else 0.0
        token = self.activations / self.tokens if self.tokens else 0.0
        rows = _times(row, free - (self.rollout - grown))
        return Room(rows, _times(token, free - (self.update - self.activations)))

    def pages(self, device: float) -> float | None:
        """What vLLM takes of so many bytes for keys and values, at most; None of another engine."""
        if self.spared is None:
            return None
        return max(0.0, PAGED_SHARE * (device - self.spared - self.weights - GRAPHS))


def _times(each: float, room: float) -> int | None:
    """How often something fits into the room; None of nothing."""
    return max(0, int(room / each)) if each else None


class Room(NamedTuple):
    """What fits into a device: rows side by side, and tokens of a pack."""

    rows: int | None
    tokens: int | None


@dataclass(frozen=True)
class Rows:
    """Sequences that are sampled side by side.

    Attributes:
        count: how many.
        positions: tokens that each has room for, its prompt included.
        waiting: tokens of base rollouts, prompts included, whose keys and values are kept to be forked.
        paged: whether they are kept in pages, by an engine for serving (vLLM) that takes for them what it finds free.
    """

    count: int
    positions: int
    waiting: float = 0.0
    paged: bool = False


def training_memory(
    size: Size,
    rows: Rows,
    precision: str,
    token_budget: int,
    logit_budget: int,
    embedder: float = 0.0,
    recomputed: bool = False,
) -> Memory:
    """Memory of a training; the embedder's parameters are float32. `recomputed`: activation checkpointing."""
    number = BYTES[precision]
    mixed = number < FULL
    layer = _activations(size, number)
    kept = size.layers * FULL * size.hidden + 2 * layer if recomputed else (size.layers + 1) * layer
    largest = max(size.head_matrix, size.matrices // size.layers)
    copied = largest if recomputed else size.parameters
    spared = (FULL + MOMENTS) * size.parameters + FULL * embedder + _scored(size, logit_budget)
    return Memory(
        weights=number * size.parameters if mixed or rows.paged else 0.0,
        masters=FULL * size.parameters,
        moments=2 * FULL * size.parameters,
        gradients=FULL * size.parameters,
        embedder=FULL * embedder,
        copies=number * copied + GRADIENT_COPIES * largest if mixed else 0.0,
        activations=token_budget * kept,
        logits=logit_budget * (UPDATE_LOGIT + number),
        tokens=token_budget,
        spared=spared if rows.paged else None,
        **_sampling(size, rows, number, _scoring(size, number, token_budget, logit_budget)),
    )


def sampling_memory(
    size: Size, rows: Rows, precision: str, embedder: float = 0.0, scored: tuple[int, int] | None = None
) -> Memory:
    """Memory of a job that samples without training.

    `scored` are the budgets of tokens and logits with which the policy itself says how probable vLLM's tokens were.
    """
    number = BYTES[precision]
    weights, policy, spared, scoring = number * size.parameters, 0.0, 0.0, 0.0
    if rows.paged and scored:
        policy, scoring = weights, _scoring(size, number, *scored)
        spared = policy + _scored(size, scored[1])
    return Memory(
        weights=weights,
        masters=policy,
        embedder=FULL * embedder,
        spared=spared if rows.paged else None,
        **_sampling(size, rows, number, scoring),
    )


def _scoring(size: Size, number: int, token_budget: int, logit_budget: int) -> float:
    """Bytes of a forward pass of the policy over what vLLM has drawn, at its highest point."""
    return token_budget * 2 * _activations(size, number) + logit_budget * (SCORED_LOGIT + number)


def _scored(size: Size, logit_budget: int) -> float:
    """What vLLM leaves for that pass: a chunk of logits and a copy of the head."""
    return logit_budget * (SCORED_LOGIT + BYTES["bfloat16"]) + HEAD_COPY * size.head_matrix


def _sampling(size: Size, rows: Rows, number: int, scoring: float = 0.0) -> dict[str, Any]:
    """What sampling takes; `scoring` for a forward pass of the policy itself over what another engine has drawn."""
    cached = size.cached_bytes(number)
    if rows.paged:  # the least that it starts with is one longest row
        drawing = rows.count * size.vocabulary * (SERVED_LOGIT + number)
        return {"cache": rows.positions * cached, "sampling": drawing + scoring}
    return {
        "cache": (1 + LEAVING) * rows.count * rows.positions * cached,
        "kept": rows.waiting * cached,
        "rows": rows.count,
        "sampling": rows.count * size.vocabulary * (SAMPLED_LOGIT + number),
    }


def _activations(size: Size, number: int) -> float:
    """Bytes that one token leaves behind in one layer for the backward pass.

    Two norms, each its input and what it makes of it in float32 and the product's input in the precision of products;
    queries, the output of attention and the input of its last product; gathered keys and values; of the MLP, both
    products, the activation and what they make together. A layer's temporaries in the backward pass are as much
    again, once.
    """
    norms = 2 * (2 * FULL + number) * size.hidden
    attention = number * (3 * size.queries + 2 * GATHERED * size.keys)
    return norms + attention + number * 4 * size.inner
