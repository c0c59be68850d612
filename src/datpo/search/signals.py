"""Per-token signals that need the text of a branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from datpo.core.tree import Branch, Floats
from datpo.search.forks import NO_SENTENCE
from datpo.search.segment import offsets_of, token_groups


def sentence_numbers(branch: Branch, decode: Callable[[Sequence[int]], str]) -> Floats:
    """The sentence each token of a branch belongs to (T,), counted from 0; an end token belongs to none."""
    spoken = branch.tokens[: len(branch.tokens) - (branch.finish == "stop")].tolist()
    number_T = np.full(len(branch.tokens), NO_SENTENCE, dtype=float)
    if spoken:
        number_T[: len(spoken)] = token_groups(decode(spoken), offsets_of(decode, spoken))
    return number_T
