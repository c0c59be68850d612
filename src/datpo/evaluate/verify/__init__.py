r"""Checking answers: a problem and a response in, a verdict out.

The answer is the last complete, non-empty box (`boxed`); without one there is none, and nothing is guessed. What counts
as one answer in the domain `math` stands in one table, docs/checker.md, whose examples are tests.

Add a domain by writing a class with the three methods of `Domain` and naming it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.evaluate.verify.math import RELEASED, WITH_FALLBACK, Mathematics
from datpo.evaluate.verify.moves import Moves
from datpo.evaluate.verify.verdict import VERDICTS, Domain, Verdict

__all__ = ["CHECKERS", "DOMAINS", "VERDICTS", "Domain", "Verdict", "checker_of", "grade_all"]

DOMAINS: Mapping[str, Domain] = MappingProxyType({"math": Mathematics(), "moves": Moves()})
# The one we stand for; the same with guesses at answers without a box; the release's, which differs in mathematics.
CHECKERS: Mapping[str, Mapping[str, Domain]] = MappingProxyType(
    {
        "own": DOMAINS,
        "own_unboxed": {**DOMAINS, "math": Mathematics(rules=WITH_FALLBACK)},
        "datpo_release": {**DOMAINS, "math": Mathematics(rules=RELEASED)},
    }
)


def checker_of(domain: str, checker: str = "own") -> Domain:
    """The checker of that name for a domain.

    Raises:
        InputError: there is none; the names there are get listed.
    """
    if domain not in DOMAINS:
        raise InputError(f"unknown domain {domain!r}; choose one of: {', '.join(DOMAINS)}")
    if checker not in tuple(CHECKERS):  # which takes what cannot be hashed, too
        raise InputError(f"unknown checker {checker!r}; choose one of: {', '.join(CHECKERS)}")
    return CHECKERS[checker][domain]


def grade_all(domain: str, pairs: Sequence[tuple[Problem, str]], checker: str = "own") -> list[Verdict]:
    """The verdicts on (problem, response) pairs of one domain, in their order; safe from any thread.

    Raises:
        InputError: the domain or the checker is unknown.
    """
    return checker_of(domain, checker).grade_all(pairs)
