"""Numbers that are not known for certain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """A number that is not known for certain: the least and the most it may well be, and what is reckoned with."""

    low: float
    mid: float
    high: float

    @classmethod
    def exactly(cls, number: float) -> Range:
        """A number that is known."""
        return cls(number, number, number)

    def __iter__(self) -> Iterator[float]:
        """From the least on."""
        return iter((self.low, self.mid, self.high))

    def __mul__(self, other: Range | float) -> Range:
        """The product, all at their least, as reckoned with, or all at their most."""
        factors = other if isinstance(other, Range) else Range.exactly(other)
        return Range(*(a * b for a, b in zip(self, factors, strict=True)))

    def __add__(self, other: Range) -> Range:
        """The sum, in the same way."""
        return Range(*(a + b for a, b in zip(self, other, strict=True)))
