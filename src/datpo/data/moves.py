"""Move puzzles: a domain small enough to be learnt by a 0.3M-parameter model, and still a search.

A puzzle gives a number to start at, a number to reach, a set of moves and how many of them to use, each at
most once. It is a relative of the Countdown task: checking an answer is arithmetic, finding one is a search,
and several answers are right, so that coverage (pass@k) means something.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal
from zlib import crc32

import numpy as np

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.core.seeds import generator

LOWEST, HIGHEST = 0, 39  # every value on the way lies within
STARTS = range(1, 21)
MOVES = (*(f"{sign}{n}" for sign in "+-" for n in range(2, 10)), "*2", "*3")

LEVELS = {1: (3, 2), 2: (4, 2), 3: (4, 3), 4: (5, 3), 5: (5, 4), 6: (6, 4), 7: (6, 5), 8: (7, 5)}
"""Difficulty -> (moves offered, moves to use)."""

Part = Literal["training", "validation", "benchmark"]
Identity = tuple[int, int, int, tuple[str, ...]]

_MOVE = re.compile(r"[+-][1-9][0-9]?|\*[1-9]")
_TEXT = re.compile(r"Start at ([0-9]{1,2})\. Reach ([0-9]{1,2}) with ([0-9]) of: ([-+*0-9 ]{2,99})\.")


@dataclass(frozen=True)
class Puzzle:
    """Get from `start` to `target` with exactly `use` different ones of the offered `moves`."""

    start: int
    target: int
    use: int
    moves: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Puzzle:
        """The puzzle that `text` states; the inverse of `text()`.

        Raises:
            ValueError: the text is no puzzle, offers a move twice, or asks for more moves than it offers.
        """
        match = _TEXT.fullmatch(text.strip())
        moves = match[4].split(" ") if match else []
        if match is None or not all(_MOVE.fullmatch(move) for move in moves):
            raise ValueError(f"not a move puzzle: {text[:100]!r}")
        start, target, use = (int(match[group]) for group in (1, 2, 3))
        if len(set(moves)) != len(moves):
            raise ValueError(f"a move is offered twice: {text[:100]!r}")
        if not 1 <= use <= len(moves):
            raise ValueError(f"{use} of {len(moves)} moves cannot be used: {text[:100]!r}")
        if not (_inside(start) and _inside(target)):
            raise ValueError(f"start and target lie within {LOWEST}..{HIGHEST}: {text[:100]!r}")
        return cls(start, target, use, tuple(moves))

    def text(self) -> str:
        """The puzzle in words, as a model reads it."""
        return f"Start at {self.start}. Reach {self.target} with {self.use} of: {' '.join(self.moves)}."

    def values(self, sequence: Sequence[str]) -> list[int]:
        """The numbers after each move of `sequence`, whether or not the puzzle allows these moves.

        Raises:
            ValueError: an element is not a move.
        """
        values, here = [], self.start
        for move in sequence:
            here = _after(here, move)
            values.append(here)
        return values

    def reaches(self, sequence: Sequence[str]) -> bool:
        """Whether `sequence` solves the puzzle.

        That is: it has `use` moves, all offered and all different, every value on the way lies within 0..39,
        and the last one is the target. Any such sequence counts, not only the one the puzzle was made from.
        """
        if len(sequence) != self.use or len(set(sequence)) != self.use or not set(sequence) <= set(self.moves):
            return False
        values = self.values(sequence)
        return all(map(_inside, values)) and values[-1] == self.target

    @property
    def part(self) -> Part:
        """The part of all puzzles this one belongs to, whatever the order its moves are offered in.

        Thirteen in sixteen are for training sets and the pre-training corpus, one for validation sets, two for
        benchmarks. So these stay apart though each is made without knowing the others.
        """
        sixteenth = crc32(repr(self.identity).encode()) % 16
        return "validation" if sixteenth == 0 else "benchmark" if sixteenth <= 2 else "training"

    @property
    def identity(self) -> Identity:
        """Equal for puzzles that differ only in the order their moves are offered in."""
        return self.start, self.target, self.use, tuple(sorted(self.moves))


def draw_puzzle(level: int, rng: np.random.Generator) -> tuple[Puzzle, tuple[str, ...]]:
    """A random puzzle of a level, and the random feasible sequence whose end is its target."""
    offered, use = LEVELS[level]
    while True:
        moves = tuple(MOVES[i] for i in rng.permutation(len(MOVES))[:offered].tolist())
        draft = Puzzle(int(rng.integers(STARTS.start, STARTS.stop)), LOWEST, use, moves)
        sequence = _moves_at_random(draft, rng)
        values = draft.values(sequence)
        if all(map(_inside, values)):
            return replace(draft, target=values[-1]), sequence


def wander(puzzle: Puzzle, rng: np.random.Generator) -> tuple[str, ...]:
    """A random sequence of offered moves that keeps within 0..39 and has no eye for the target.

    The puzzle must allow one, as every puzzle drawn here does.
    """
    while True:
        sequence = _moves_at_random(puzzle, rng)
        if all(map(_inside, puzzle.values(sequence))):
            return sequence


def solution(puzzle: Puzzle, sequence: Sequence[str]) -> str:
    """A sequence worked out, one sentence a step, with the moves boxed at the end.

    Blank lines stand between the steps, so that splitting by sentence, by line and by paragraph agree.
    """
    values = puzzle.values(sequence)
    steps = zip([puzzle.start, *values], sequence, values, strict=False)
    lines = [f"From {here} {move} = {there}." for here, move, there in steps]
    return "\n\n".join([*lines, f"So \\boxed{{ {' '.join(sequence)}}}."])


def make_problems(count: int, levels: Sequence[int], seed: int, name: str, part: Part) -> list[Problem]:
    """`count` different puzzles, as many of each level as of any other.

    The same arguments give the same problems, and sets of different parts share none. The key is the sequence a
    puzzle was made from.

    Raises:
        InputError: an unknown level, or a level has fewer puzzles than asked for.
    """
    if not levels or not set(levels) <= set(LEVELS):
        raise InputError(f"data set {name!r}: levels of move puzzles are {min(LEVELS)} to {max(LEVELS)}, not {levels}")
    taken: set[Identity] = set()
    problems = []
    for index in range(count):
        level = levels[index % len(levels)]
        puzzle, sequence = _new_puzzle(level, generator(seed, "moves", name, index), part, taken)
        taken.add(puzzle.identity)
        problems.append(
            Problem(
                id=f"moves/{name}/{index}",
                problem=puzzle.text(),
                answer=" ".join(sequence),
                level=level,
                source=f"datpo.data.moves, seed {seed}",
            )
        )
    return problems


def _new_puzzle(
    level: int, rng: np.random.Generator, part: Part, taken: set[Identity]
) -> tuple[Puzzle, tuple[str, ...]]:
    """A puzzle of `part` whose identity is not `taken`."""
    for _ in range(2000):
        puzzle, sequence = draw_puzzle(level, rng)
        if puzzle.part == part and puzzle.identity not in taken:
            return puzzle, sequence
    raise InputError(f"level {level} has too few move puzzles for a {part} set of this size; ask for fewer")


def _moves_at_random(puzzle: Puzzle, rng: np.random.Generator) -> tuple[str, ...]:
    return tuple(puzzle.moves[i] for i in rng.permutation(len(puzzle.moves))[: puzzle.use].tolist())


def _inside(value: int) -> bool:
    return LOWEST <= value <= HIGHEST


def _after(value: int, move: str) -> int:
    """The number that `move` makes of `value`."""
    if not _MOVE.fullmatch(move):
        raise ValueError(f"not a move: {move[:20]!r}")
    by = int(move[1:])
    return {"+": value + by, "-": value - by, "*": value * by}[move[0]]
