"""Checking answers: a problem and a response in, a verdict out.

Add a domain by writing a class with the three methods of `Domain` and naming it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.evaluate.verify.math import Mathematics
from datpo.evaluate.verify.moves import Moves
from datpo.evaluate.verify.verdict import VERDICTS, Domain, Verdict

__all__ = ["DOMAINS", "VERDICTS", "Domain", "Verdict", "grade_all"]

DOMAINS: Mapping[str, Domain] = MappingProxyType({"math": Mathematics(), "moves": Moves()})


def grade_all(domain: str, pairs: Sequence[tuple[Problem, str]]) -> list[Verdict]:
    """The verdicts on (problem, response) pairs of one domain, in their order; safe from any thread.

    Raises:
        InputError: the domain is unknown.
    """
    if domain not in DOMAINS:
        raise InputError(f"unknown domain {domain!r}; choose one of: {', '.join(DOMAINS)}")
    return DOMAINS[domain].grade_all(pairs)
