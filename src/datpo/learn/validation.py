"""How a training stands on problems it is not trained on: a small evaluation at intervals, for people to look at.

Nothing is chosen by it: the checkpoint that is reported is the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from datpo.core.engine import Engine, Request
from datpo.core.problem import Problem
from datpo.core.seeds import seed
from datpo.core.tree import Ints
from datpo.evaluate.metrics import pass_at_k
from datpo.evaluate.verify import grade_all
from datpo.learn.policy import Policy
from datpo.learn.prompts import ended


@dataclass(frozen=True)
class Validation:
    """A split for validation, and how samples of it are drawn and graded.

    Attributes:
        problems, prompts: the split.
        samples: drawn for each problem; the same seeds at every step, so that steps differ by the policy alone.
        max_new_tokens: of a response; less where the context window ends.
        stops: texts before which a response is cut.
        domain, checker: what grades; a response cut off by the limit is wrong, as in the evaluation.
    """

    problems: Sequence[Problem]
    prompts: Sequence[Ints]
    samples: int
    max_new_tokens: int
    stops: Sequence[str]
    domain: str
    checker: str

    def scores(self, engine: Engine, policy: Policy) -> Mapping[str, Any]:
        """avg@n and pass@n of the policy, and the share of samples cut off; as keys of a training log's row."""
        requests = [
            Request(
                prompt,
                seed(0, "validation", problem.id, i),
                min(self.max_new_tokens, policy.context_window - len(prompt)),
            )
            for problem, prompt in zip(self.problems, self.prompts, strict=True)
            for i in range(self.samples)
        ]
        continuations = engine.sample(requests)
        read = [ended(policy.decode(found.tokens), found.finish, self.stops) for found in continuations]
        texts = [text for text, _ in read]
        asked = [problem for problem in self.problems for _ in range(self.samples)]
        verdicts = grade_all(self.domain, list(zip(asked, texts, strict=True)), self.checker)
        cut_off = np.array([finish == "length" for _, finish in read])
        right = np.array([verdict.verdict == "right" for verdict in verdicts]) & ~cut_off
        right_P = right.reshape(len(self.problems), self.samples).sum(axis=1)
        return {
            "validation_avg": float(right_P.mean() / self.samples),
            "validation_pass": float(pass_at_k(self.samples * np.ones_like(right_P), right_P, self.samples).mean()),
            "validation_truncated": float(cut_off.mean()),
        }
