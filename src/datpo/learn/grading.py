"""Rewards of rollouts: the verifier's word on the text of a leaf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.core.tree import RolloutTree
from datpo.evaluate.verify import grade_all
from datpo.learn.policy import Policy
from datpo.learn.prompts import ended
from datpo.search.rollout import Grade, Leaf

GradedText = Literal["response", "branch"]
Truncated = Literal["graded", "wrong"]


def grader(
    domain: str,
    policy: Policy,
    stops: Sequence[str],
    graded: GradedText = "response",
    truncated: Truncated = "graded",
    checker: str = "own",
) -> Grade:
    """Grades leaves on their text up to the first stop string: the whole response, or the branch's own part of it.

    A response that was cut off, and not behind a stop string, is graded like any other, or has no answer whatever it
    says. `checker` is one of `verify.CHECKERS`.
    """

    def grade(leaves: Sequence[Leaf]) -> list[tuple[float, str]]:
        """Reward and verdict of each leaf, in order."""
        read = [
            ended(policy.decode(_tokens(tree, leaf, graded)), tree.branches[leaf].finish, stops)
            for tree, leaf in leaves
        ]
        pairs = [(tree.problem, text) for (tree, _), (text, _) in zip(leaves, read, strict=True)]
        verdicts = grade_all(domain, pairs, checker)
        return [
            (0.0, "no_answer") if truncated == "wrong" and finish == "length" else (verdict.reward, verdict.verdict)
            for (_, finish), verdict in zip(read, verdicts, strict=True)
        ]

    return grade


def _tokens(tree: RolloutTree, leaf: int, graded: GradedText) -> list[int]:
    tokens = tree.response(leaf) if graded == "response" else tree.branches[leaf].tokens
    return [int(token) for token in tokens]


def check_keys(domain: str, problems: Sequence[Problem]) -> None:
    """Refuse answer keys the checker cannot parse before anything is trained.

    Raises:
        InputError: some keys are unreadable; the problems are named.
    """
    verdicts = grade_all(domain, [(problem, f"\\boxed{{{problem.answer}}}") for problem in problems])
    bad = [p.id for p, verdict in zip(problems, verdicts, strict=True) if verdict.verdict == "bad_key"]
    if bad:
        raise InputError(
            f"the checker cannot parse the answer keys of {len(bad)} training problems; drop them or mend their keys: "
            f"{', '.join(bad)}"
        )
