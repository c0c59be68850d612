"""Fork rules: where the trajectories of a tree are forked, read off their signals.

Most rules look at one base rollout at a time (`Positions`); `on_bases` makes a rule for trees of them, `named` one
that a configuration asks for by name. TreeRL's `least_sure` compares all branches of a tree.

|tau| is the number of tokens of a trajectory without its end token. Suffixes: T tokens of a branch, S its sentences
or steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from datpo.core.tree import Branch, Floats, Fork, Ints, RolloutTree
from datpo.search.budget import Plan

# A branch's signals, K, rng -> at most K distinct fork positions, ascending.
Positions = Callable[[Branch, int, np.random.Generator], list[int]]

NO_SENTENCE = -1  # the "sentence", "step" or "paragraph" signal of an end token

INFLUENTIAL = 0.8  # quantile of the steps' influence from which on a step is a candidate (AttnRL, rho = 0.2)
MOST_RELEASED = 2  # attention-based forks of one trajectory in the released DATPO code


@dataclass(frozen=True)
class ForkRule:
    """Where a tree is forked.

    Attributes:
        choose: the forks of a tree under a plan; a generator is for rules that draw lots.
        signals: per-token signals it reads besides "entropy".
    """

    choose: Callable[[RolloutTree, Plan, np.random.Generator], list[Fork]]
    signals: tuple[str, ...] = ()


NO_FORKS = ForkRule(lambda tree, plan, rng: [])  # parallel sampling


def on_bases(positions: Positions, signals: tuple[str, ...] = ()) -> ForkRule:
    """Fork each base rollout of the plan at its own positions, whatever the others look like."""

    def choose(tree: RolloutTree, plan: Plan, rng: np.random.Generator) -> list[Fork]:
        return [
            Fork(base, at, plan.siblings)
            for base in _bases(tree, plan)
            for at in positions(tree.branches[base], plan.forks, rng)
        ]

    return ForkRule(choose, signals)


def named(name: str, after_first_token: bool, fill: bool = False) -> ForkRule:
    """The rule of that name in the paper's comparison of fork strategies (Tables 1, 3 and 7).

    Args:
        name: one of `RULES`.
        after_first_token: whether the token a rule points at stays in the prefix (the paper's algorithms read
            literally, and its code) or is sampled anew. Rules that point at no token pay no heed.
        fill: whether missing positions are made up for (the released code without difficulty adaptation).

    Raises:
        ValueError: there is no rule of that name.
    """
    if name not in RULES:
        raise ValueError(f"fork_rule must be one of {', '.join(RULES)}, not {name!r}")
    build, signals = RULES[name]
    positions = build(after_first_token)
    return on_bases(filled(positions) if fill else positions, signals)


def least_sure(uncertainty: Literal["surprise", "entropy"]) -> ForkRule:
    """Fork each base rollout's tree at the tokens its sampler was least sure of (TreeRL).

    Of all tokens of a base rollout and of the branches below it the N = `plan.forks` with the highest -log p of the
    token (its code) or entropy of its distribution are sampled anew. (TreeRL first takes N of each branch and then
    N of those, which are the same.) Nothing is forked where the signal "closing" is above 0: behind the token that
    announces the answer. A place may be forked in two rounds.
    """
    return ForkRule(partial(_least_sure, surprise if uncertainty == "surprise" else entropy), ("closing",))


def surprise(branch: Branch) -> Floats:
    """-log p of each token (T,)."""
    return -branch.logprobs


def entropy(branch: Branch) -> Floats:
    """Entropy in nats of the distribution each token was drawn from (T,)."""
    return branch.signals["entropy"]


def _least_sure(
    uncertainty: Callable[[Branch], Floats], tree: RolloutTree, plan: Plan, rng: np.random.Generator
) -> list[Fork]:
    base_of: list[int] = []
    for index, branch in enumerate(tree.branches):
        base_of.append(index if branch.parent is None else base_of[branch.parent])
    forks = []
    for base in _bases(tree, plan):
        family = [index for index, above in enumerate(base_of) if above == base]
        places: list[tuple[float, int, int]] = []
        for index in family:
            branch, score_T = tree.branches[index], uncertainty(tree.branches[index])
            places += [(-float(score_T[at - branch.start]), index, at) for at in _open_places(branch)]
        chosen = sorted(places)[: plan.forks]  # the least sure; of equals the earlier branch, the earlier token
        forks += [Fork(index, at, plan.siblings) for index, at in sorted(place[1:] for place in chosen)]
    return forks


def _open_places(branch: Branch) -> list[int]:
    """The positions of all tokens that may be forked and do not stand behind the answer's herald."""
    first, last = fork_bounds(branch)
    return [at for at in range(first, last + 1) if not branch.signals["closing"][at - branch.start] > 0]


def _bases(tree: RolloutTree, plan: Plan) -> Sequence[int]:
    return tree.roots if plan.bases is None else plan.bases


def spoken_length(branch: Branch) -> int:
    """|tau|: the tokens of a branch without the end token."""
    return len(branch.tokens) - (branch.finish == "stop")


def fork_bounds(branch: Branch) -> tuple[int, int]:
    """The first and last position a fork may lie at: never at the start, never behind the last token before EOS."""
    return branch.start + 1, branch.start + spoken_length(branch) - 1


def uniform(branch: Branch, forks: int, rng: np.random.Generator) -> list[int]:
    """K of all allowed positions, drawn without return."""
    first, last = fork_bounds(branch)
    return _best(branch, rng.permutation(np.arange(first, last + 1)).tolist(), forks)


def equidistant(branch: Branch, forks: int, rng: np.random.Generator) -> list[int]:
    """The ends of K + 1 segments of equal length: floor(k |tau| / (K + 1)) for k = 1..K."""
    length = spoken_length(branch)
    return _best(branch, [branch.start + k * length // (forks + 1) for k in range(1, forks + 1)], forks)


def uncertain_tokens(after_first_token: bool, spacing: int = 0) -> Positions:
    """Fork at the tokens of highest entropy H_t, the earlier one on a tie.

    A token within `spacing` per cent of |tau| of one chosen before is passed over (Table 7).
    """

    def positions(branch: Branch, forks: int, rng: np.random.Generator) -> list[int]:
        ranked_T = np.argsort(-branch.signals["entropy"], kind="stable")
        return _best(branch, (branch.start + ranked_T + int(after_first_token)).tolist(), forks, spacing)

    return positions


def uncertain_sentences(after_first_token: bool) -> Positions:
    """Fork at the starts of the sentences of highest mean entropy (DATPO, Algorithm 1), the earlier one on a tie."""

    def positions(branch: Branch, forks: int, rng: np.random.Generator) -> list[int]:
        starts_S, scores_S = sentence_scores(branch)
        ranked_S = starts_S[np.argsort(-scores_S, kind="stable")]
        return _best(branch, (branch.start + ranked_S + int(after_first_token)).tolist(), forks)

    return positions


def influential_steps(after_first_token: bool, spacing: int = 0) -> Positions:
    """Fork at the K earliest of the steps that later steps attend to most (AttnRL's attention-based branching).

    A candidate's influence reaches the 0.8-quantile over all steps, or is positive where that quantile is 0, and it
    stands `spacing` tokens or more behind the start and from those chosen before. The first step counts with
    influence 0 and is no candidate. If candidates are too few the earliest other steps join them, however near.
    """

    def positions(branch: Branch, forks: int, rng: np.random.Generator) -> list[int]:
        """The K earliest candidates that stand far enough apart, else the earliest steps."""
        starts_S, influence_S = step_influences(branch)
        high_S = np.flatnonzero(influence_S >= _threshold(influence_S))
        candidates: list[int] = []
        for start in starts_S[high_S[high_S > 0]].tolist():
            if all(abs(start - other) >= spacing for other in [0, *candidates]):
                candidates.append(start)
        ranked = [*candidates, *starts_S[1:].tolist()]
        return _best(branch, [branch.start + start + int(after_first_token) for start in ranked], forks)

    return positions


def step_influences(branch: Branch) -> tuple[Ints, Floats]:
    """First token and forward context influence of each step of a branch, the first step's taken as 0; both (S,)."""
    starts_S, _ = _means(branch, "step", "influence")
    # the first token's number, as a mean of equal numbers may differ from them and miss a threshold
    influence_S = np.array(branch.signals["influence"][starts_S], dtype=float)
    influence_S[:1] = 0.0
    return starts_S, influence_S


def _threshold(influence_S: Floats) -> float:
    """The 0.8-quantile of the steps' influence, or the smallest positive one where that is 0."""
    positive = influence_S[influence_S > 0]
    if not len(positive):
        return 0.0
    return float(np.quantile(influence_S, INFLUENTIAL)) or float(positive.min())


def influential_steps_released(branch: Branch, forks: int, rng: np.random.Generator) -> list[int]:
    """Fork at the two earliest of the steps whose tokens later tokens attend to most (released DATPO code).

    It differs from AttnRL. A step is a paragraph, and its influence the mean over its tokens of "token_influence"; the
    first counts for the 0.8-quantile though it is no candidate; without influence nothing is forked; other steps
    join only if there is no candidate at all; and a step's first token is always sampled anew.
    """
    starts_S, influence_S = _means(branch, "paragraph", "token_influence")
    if not (influence_S > 0).any():
        return []
    candidates_S = influence_S >= np.quantile(influence_S, INFLUENTIAL)
    earliest_S = starts_S[1:][candidates_S[1:]] if candidates_S[1:].any() else starts_S[1:]
    return _best(branch, (branch.start + earliest_S).tolist(), min(forks, MOST_RELEASED))


def filled(positions: Positions) -> Positions:
    """As many positions as are asked for, while there are any (released DATPO code with its adaptation off).

    Missing ones are taken from round(k |tau| / (K + 1)), k = 1..K. Those are enough: K different ones, or from
    K = |tau| on all there are. (The release would go on with the earliest free ones.)
    """

    def all_of_them(branch: Branch, forks: int, rng: np.random.Generator) -> list[int]:
        length = spoken_length(branch)
        spread = [branch.start + round(k * length / (forks + 1)) for k in range(1, forks + 1)]
        return _best(branch, [*positions(branch, forks, rng), *spread], forks)

    return all_of_them


def _best(branch: Branch, ranked: Iterable[int], forks: int, spacing: int = 0) -> list[int]:
    """The first K of the ranked positions that a fork may lie at, each over `spacing` % of |tau| from the others."""
    first, last = fork_bounds(branch)
    near = spacing * spoken_length(branch)  # in hundredths of a token: whole numbers compare exactly
    chosen: list[int] = []
    for at in ranked:
        if len(chosen) == forks:
            break
        if first <= at <= last and all(100 * abs(at - other) > near for other in chosen):
            chosen.append(at)
    return sorted(chosen)


def sentence_scores(branch: Branch) -> tuple[Ints, Floats]:
    """First token and mean token entropy (nats) of each sentence of a branch, in order; both (S,)."""
    return _means(branch, "sentence", "entropy")


def _means(branch: Branch, unit: str, signal: str) -> tuple[Ints, Floats]:
    """First token of each sentence or step of a branch, and the mean of a signal over its tokens; both (S,)."""
    unit_T = np.asarray(branch.signals[unit], dtype=np.int64)
    signal_T = np.asarray(branch.signals[signal], dtype=float)
    spoken = unit_T != NO_SENTENCE
    labels, starts, group_T = np.unique(unit_T[spoken], return_index=True, return_inverse=True)
    sums = np.bincount(group_T, weights=signal_T[spoken], minlength=len(labels))
    counts = np.bincount(group_T, minlength=len(labels))
    return np.flatnonzero(spoken)[starts].astype(np.int64), sums / counts


# Name -> the positions, given `after_first_token`, and the signals they are read off.
RULES: dict[str, tuple[Callable[[bool], Positions], tuple[str, ...]]] = {
    "random": (lambda after_first_token: uniform, ()),
    "fixed-seg": (lambda after_first_token: equidistant, ()),
    "atb": (influential_steps, ("step", "influence")),
    "atb-release": (lambda after_first_token: influential_steps_released, ("paragraph", "token_influence")),
    "tok-entropy": (uncertain_tokens, ()),
    "tok-entropy-5": (partial(uncertain_tokens, spacing=5), ()),
    "tok-entropy-10": (partial(uncertain_tokens, spacing=10), ()),
    "sent-entropy": (uncertain_sentences, ("sentence",)),
}
