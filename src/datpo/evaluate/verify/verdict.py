"""The verdict on a response, and what a domain of problems must offer to get one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from datpo.core.problem import Problem

VERDICTS = ("right", "wrong", "no_answer", "timeout", "bad_key")


@dataclass(frozen=True)
class Verdict:
    """What the checker says of one response.

    Attributes:
        verdict: `right`, `wrong`, `no_answer` (no box), `timeout` (over the limit of time or memory) or
            `bad_key` (the key itself cannot be read, so no response can be judged by it).
        answer: the answer found in the response; None if there is none.
    """

    verdict: str
    answer: str | None

    @property
    def reward(self) -> float:
        """1 iff the answer is right; every other verdict earns 0."""
        return 1.0 if self.verdict == "right" else 0.0


class Domain(Protocol):
    """A kind of problem with its own idea of a right answer.

    Attributes:
        checker: what decides, for the header of a scores file: scores of different checkers are not to be compared.
    """

    @property
    def checker(self) -> str:
        """The name of the checker, with the version of what it stands on."""

    def grade(self, problem: Problem, response: str) -> Verdict:
        """The verdict on one response."""

    def grade_all(self, pairs: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """The verdicts on many responses, in their order."""

    def equivalent(self, problem: Problem, answer_a: str, answer_b: str) -> bool:
        """Whether two answers to the problem are one answer, right or not (classes of maj@k)."""
