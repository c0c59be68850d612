"""Peak memory of a job on its device, by part.

What stands all the time: weights, and in training their float32 masters, AdamW's moments and the gradients. On top of
it come by turns the rollout (keys and values of the rows side by side, their logits) and the update (activations of one
pack, logits of one chunk). The peak is what stands and the larger of the two; fragments and the libraries' own buffers
come to a few more per cent.
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
# Rows leave a batch when a fifth has ended: then the old cache and a copy of four fifths exist together.
LEAVING = 0.8
# Keys and values are gathered once for each path through a pack, so a shared one stands there more than once.
GATHERED = 2.0


@dataclass(frozen=True)
class Memory:
    """Bytes of a job by part.

    Attributes:
        weights: as matrix products take them; in mixed precision copies of the masters.
        masters, gradients: float32.
        moments: AdamW's two.
        embedder: the model that diversity is measured with.
        cache: keys and values of all rows side by side, and a smaller copy of them while rows leave.
        kept: keys and values of base rollouts that wait to be forked.
        sampling: logits of one new token of every row, on the way to a draw.
        activations: of a whole pack, every layer's kept for the backward pass.
        recomputed: the same where a layer's are computed again when its turn comes, and only its input is kept.
        logits: of one chunk in the update.
        rows: sequences side by side that this is reckoned with.
        tokens: of a pack that this is reckoned with.
    """

    weights: float
    masters: float = 0.0
    moments: float = 0.0
    gradients: float = 0.0
    embedder: float = 0.0
    cache: float = 0.0
    kept: float = 0.0
    sampling: float = 0.0
    activations: float = 0.0
    recomputed: float = 0.0
    logits: float = 0.0
    rows: int = 0
    tokens: int = 0

    @property
    def standing(self) -> float:
        """What is there all the time."""
        return self.weights + self.masters + self.moments + self.gradients + self.embedder

    @property
    def rollout(self) -> float:
        """What sampling adds."""
        return self.cache + self.kept + self.sampling

    @property
    def peak(self) -> float:
        """The most at any time."""
        return self.standing + max(self.rollout, self.activations + self.logits)

    @property
    def peak_recomputed(self) -> float:
        """The same, where activations are computed again."""
        return self.standing + max(self.rollout, self.recomputed + self.logits)

    def room(self, device: float) -> Room:
        """The largest settings with which the job fits into so many bytes."""
        free = device - self.standing
        row = (self.cache + self.sampling) / self.rows if self.rows else 0.0
        kept, again = (part / self.tokens if self.tokens else 0.0 for part in (self.activations, self.recomputed))
        return Room(_times(row, free - self.kept), _times(kept, free - self.logits), _times(again, free - self.logits))


def _times(each: float, room: float) -> int | None:
    """How often something fits into the room; None of nothing."""
    return max(0, int(room / each)) if each else None


class Room(NamedTuple):
    """What fits into a device: rows side by side, and tokens of a pack, activations kept or computed again."""

    rows: int | None
    tokens: int | None
    tokens_recomputed: int | None


@dataclass(frozen=True)
class Rows:
    """Sequences that are sampled side by side.

    Attributes:
        count: how many.
        positions: tokens that each has room for, its prompt included.
        waiting: tokens of base rollouts, prompts included, whose keys and values are kept to be forked.
    """

    count: int
    positions: int
    waiting: float = 0.0


def training_memory(
    size: Size, rows: Rows, precision: str, token_budget: int, logit_budget: int, embedder: float = 0.0
) -> Memory:
    """Memory of a training; the embedder's parameters are float32."""
    number = BYTES[precision]
    layer = _activations(size, number)
    return Memory(
        weights=number * size.parameters if number < FULL else 0.0,
        masters=FULL * size.parameters,
        moments=2 * FULL * size.parameters,
        gradients=FULL * size.parameters,
        embedder=FULL * embedder,
        activations=token_budget * (size.layers + 1) * layer,
        recomputed=token_budget * (size.layers * FULL * size.hidden + 2 * layer),
        logits=logit_budget * (UPDATE_LOGIT + number),
        tokens=token_budget,
        **_sampling(size, rows, number),
    )


def sampling_memory(size: Size, rows: Rows, precision: str, embedder: float = 0.0) -> Memory:
    """Memory of a job that samples without training."""
    number = BYTES[precision]
    return Memory(weights=number * size.parameters, embedder=FULL * embedder, **_sampling(size, rows, number))


def _sampling(size: Size, rows: Rows, number: int) -> dict[str, Any]:
    cached = size.cached_bytes(number)
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
