"""A benchmark says nothing about a model that was trained on it."""

from __future__ import annotations

from collections.abc import Sequence

from datpo.core.errors import InputError
from datpo.core.problem import Problem


def refuse_overlap(train: Sequence[Problem], test: Sequence[Problem], benchmark: str) -> None:
    """No problem may be both trained on and tested, under its own id or with the same words under another.

    Raises:
        InputError: lists the ids (of the test problems) that also stand in the training set.
    """
    ids = {problem.id for problem in train}
    texts = {_words(problem) for problem in train}
    both = [problem.id for problem in test if problem.id in ids or _words(problem) in texts]
    if both:
        raise InputError(
            f"benchmark {benchmark}: {len(both)} problems also stand in the training set: {', '.join(both)}; "
            "remove them from the training set"
        )


def _words(problem: Problem) -> str:
    return " ".join(problem.problem.split()).casefold()
