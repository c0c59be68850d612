r"""The domain `moves`: puzzles whose answer is a sequence of moves, checked by making the moves.

A problem says "Start at 10. Reach 12 with 5 of: *3 +6 -5 -7 +4 -6."; a response ends with a box such as
`\boxed{ +4 -6 *3 -7 -5}`. Many sequences may be right, so the key is not consulted: a response is right iff the
boxed moves reach the target by the rules of `datpo.data.moves`. Two answers are one iff they name the same moves
in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from datpo.core.problem import Problem
from datpo.data.moves import Puzzle
from datpo.evaluate.verify.boxed import find_answer
from datpo.evaluate.verify.verdict import Verdict

_MOVE = re.compile(r"[-+*]\d{1,6}")


class Moves:
    """Grades by simulation, in the calling process: there is nothing to guard against."""

    checker = "moves, simulated"

    def grade(self, problem: Problem, response: str) -> Verdict:
        """Right iff the boxed moves reach the target of the puzzle."""
        puzzle = _puzzle(problem.problem)
        boxed = find_answer(response)
        answer = None if boxed is None else canonical(boxed)
        if puzzle is None:
            return Verdict("bad_key", answer)
        if boxed is None:
            return Verdict("no_answer", None)
        sequence = _sequence(boxed)
        return Verdict("right" if sequence and puzzle.reaches(sequence) else "wrong", answer)

    def grade_all(self, pairs: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """The verdicts on many responses, in their order."""
        return [self.grade(problem, response) for problem, response in pairs]

    def equivalent(self, problem: Problem, answer_a: str, answer_b: str) -> bool:
        """Whether two answers name the same moves in the same order."""
        return canonical(answer_a) == canonical(answer_b)


def canonical(answer: str) -> str:
    """Moves separated by single spaces, e.g. "+4 -6 *3"; a box that holds anything else, just trimmed."""
    sequence = _sequence(answer)
    return " ".join(sequence) if sequence else " ".join(answer.split())


def _sequence(answer: str) -> tuple[str, ...] | None:
    """The moves of an answer; None if it holds anything but moves separated by spaces."""
    words = answer.split()
    return tuple(words) if words and all(_MOVE.fullmatch(word) for word in words) else None


@lru_cache(maxsize=4096)
def _puzzle(text: str) -> Puzzle | None:
    """The puzzle a problem poses; None if it poses none (or offers a move twice)."""
    try:
        return Puzzle.parse(text)
    except ValueError:
        return None
