"""Trees for tests: the worked ones of the paper's notes, and random ones."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from datpo.core.problem import Problem
from datpo.core.tree import Branch, RolloutTree
from datpo.search.rollout import under_way

PROBLEM = Problem("p", "What is 6 x 7?", "42")


def branch(parent, start, length, reward=None, tokens=None, finish="length", signals=None, logprobs=None):
    tokens = np.arange(length) + 100 if tokens is None else np.asarray(tokens)
    logprobs = np.full(len(tokens), -1.0) if logprobs is None else np.asarray(logprobs, dtype=float)
    verdict = None if reward is None else ("right" if reward else "wrong")
    return Branch(parent, start, tokens, logprobs, finish, signals or {}, reward, verdict)


def tree(*branches, prompt=(1, 2, 3)):
    return RolloutTree(PROBLEM, np.array(prompt)).grow(branches)


def grow_all(rollouts, method, problems, progress, base_seed):
    """The finished trees of a step for (problem, prompt) pairs, base rollouts and branches from one policy."""
    seedlings = under_way([RolloutTree(problem, prompt) for problem, prompt in problems], progress.step)
    planted = rollouts.plant(method, seedlings, base_seed)
    return rollouts.fork(method, planted, progress, base_seed)[0]


def tree_a():
    """Worked tree A (two bases, one fork each, two siblings):

    root ─┬─ 1: root→f1 ─┬─ 2: end τ1   r=1
          │              ├─ 3: branch   r=0
          │              └─ 4: branch   r=1
          └─ 5: root→f2 ─┬─ 6: end τ2   r=0
                         ├─ 7: branch   r=1
                         └─ 8: branch   r=1
    Branch order: τ1, τ2, then the branches; so blocks come as 1, 2, 5, 6, 3, 4, 7, 8.
    """
    return tree(
        branch(None, 0, 10, 1),
        branch(None, 0, 12, 0),
        branch(0, 4, 5, 0),
        branch(0, 4, 6, 1),
        branch(1, 6, 3, 1),
        branch(1, 6, 4, 1),
    )


TREE_A_ROWS = [1, 2, 5, 6, 3, 4, 7, 8]  # the number in the drawing of each block, in our order


def tree_b():
    """Worked chain B (one base with r=1, forks f1 and f2, two siblings each):

    root ── →f1 ─┬─ f1→f2 ─┬─ f2→end  r=1
                 ├─ r=0    ├─ r=1
                 └─ r=0    └─ r=1
    Blocks: →f1, f1→f2, f2→end, then the branches of f1 and of f2.
    """
    return tree(
        branch(None, 0, 10, 1),
        branch(0, 3, 4, 0),
        branch(0, 3, 4, 0),
        branch(0, 7, 4, 1),
        branch(0, 7, 4, 1),
    )


@st.composite
def random_trees(draw, vocabulary=50, max_branches=12, graded=True):
    """Any tree: branches fork from anything grown before, or start at the prompt."""
    branches = []
    for index in range(draw(st.integers(1, max_branches))):
        hosts = [i for i, b in enumerate(branches) if b.stop - b.start >= 2]
        parent = draw(st.sampled_from([None, *hosts])) if index else None
        start = 0
        if parent is not None:
            start = draw(st.integers(branches[parent].start + 1, branches[parent].stop - 1))
        length = draw(st.integers(1, 6))
        tokens = [draw(st.integers(3, vocabulary - 1)) for _ in range(length)]
        reward = draw(st.sampled_from([0.0, 1.0])) if graded else None
        branches.append(branch(parent, start, length, reward, tokens))
    return tree(*branches)
