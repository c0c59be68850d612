"""Every per-token signal that a fork rule may ask for, of a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from datpo.core.tree import Branch, Floats
from datpo.learn.influence import step_influence, token_influence
from datpo.learn.policy import Policy
from datpo.search.rollout import Leaf, Signal
from datpo.search.signals import closing, paragraph_numbers, sentence_numbers, step_numbers


def signals_of(policy: Policy) -> Mapping[str, Signal]:
    """Every per-token signal that a fork rule may ask for."""

    def from_text(signal: Callable[[Branch, Callable[[Sequence[int]], str]], Floats]) -> Signal:
        def of(leaves: Sequence[Leaf]) -> list[Floats]:
            return [signal(tree.branches[b], policy.decode) for tree, b in leaves]

        return of

    return {
        "sentence": from_text(sentence_numbers),
        "step": from_text(step_numbers),
        "paragraph": from_text(paragraph_numbers),
        "closing": from_text(closing),
        "influence": partial(step_influence, policy),
        "token_influence": partial(token_influence, policy),
    }
