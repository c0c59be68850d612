"""Seeds are arguments: every random draw of the project comes from `seed(base, *names)`."""

from __future__ import annotations

import hashlib

import numpy as np


def seed(base: int, *names: str | int) -> int:
    """A 63-bit seed that depends on nothing but its arguments, e.g. `seed(0, "rollout", problem.id, sample)`."""
    text = "\x1f".join(str(part) for part in (base, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(base: int, *names: str | int) -> np.random.Generator:
    """A numpy generator seeded by `seed(base, *names)`."""
    return np.random.default_rng(seed(base, *names))
