"""The page that tells what the two theorems say, what was checked, and what fails: one file, readable by itself."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from datpo.report.markup import html_table, hypertext
from datpo.report.runs import benchmark_label
from datpo.report.sheet import NOTHING, STYLE
from datpo.report.theory.checks import (
    BETAS,
    CHANCES,
    FEW,
    FEW_SAMPLES,
    MEAN,
    RATE,
    SHOWN,
    SIZES,
    TRIES,
    Check,
    checks_of,
    largest_error,
    polarised,
)
from datpo.report.theory.gap import beta_gap, beta_pass, beta_variance, second_order
from datpo.report.theory.runs import Measured
from datpo.report.theory.signal import ESTIMATORS, gain_per_mixed_group, mixed_chance

Header = Sequence[tuple[str, str]]  # (group, name) of every column
FIGURE_STYLE = "img { max-width: 100%; height: auto } p { max-width: 55em }"
SHOWN_TRIES = tuple(k for k in TRIES if k in (1, 2, 4, 16, 64, 256))


class Section(NamedTuple):
    """A heading, what is said under it, and a table: its header, its rows, and how many columns are text."""

    heading: str
    told: Sequence[str]
    header: Header
    rows: Sequence[Sequence[str]]
    left: int = 0


def theory_page(checks: Sequence[Check], runs: Sequence[Measured], settings: Mapping[str, Any], figure: bytes) -> str:
    """The whole page, the figure in it.

    Args:
        checks: of all kinds.
        runs: the decomposition of every run.
        settings: `scale`, `seed`, `draws`.
        figure: the PNG.
    """
    title = "Theory: group size, mixed groups, and pass@k"
    sections = [
        _signal(checks, settings),
        _assumption(checks),
        _approximation(),
        _polarisation(),
        _estimates(checks),
        _runs(runs, settings),
    ]
    blocks = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f"<title>{hypertext(title)}</title>\n<style>{STYLE}{FIGURE_STYLE}</style>\n</head>\n<body>",
        f"<h1>{hypertext(title)}</h1>",
        f'<img alt="Both theorems in six panels" src="data:image/png;base64,{base64.b64encode(figure).decode()}">',
        *map(_written, sections),
        "<p>Every number of this page and many more stand in theory.csv.</p>\n</body>\n</html>",
    ]
    return "\n".join(blocks) + "\n"


def _written(section: Section) -> str:
    told = [f"<p>{hypertext(paragraph)}</p>" for paragraph in section.told]
    header = [(hypertext(group), hypertext(name)) for group, name in section.header]
    rows = [[hypertext(cell) for cell in row] for row in section.rows]
    table = f'<div class="wide">\n{html_table(header, rows, section.left)}\n</div>'
    return "\n".join([f"<h2>{hypertext(section.heading)}</h2>", *told, table])


def _signal(checks: Sequence[Check], settings: Mapping[str, Any]) -> Section:
    identities = checks_of(checks, "Psi")
    simulated = checks_of(checks, "expected step")
    off = max(abs(check.error) / check.standard_error for check in simulated if check.standard_error)
    found = {(check.what, check.parameters): check for check in simulated}
    rows = []
    for size in SIZES:
        at = f"p={SHOWN} G={size} eta={RATE}"
        row = [found[f"expected step, {estimator.name}: simulated", at] for estimator in ESTIMATORS]
        rows.append([str(size), *(f"{value:.4f}" for each in row for value in (each.value, each.compared))])
    told = [
        "Theorem A.1. A group teaches only if it holds right and wrong answers. With chance p of a right sample and G "
        "samples that has the probability Ψ_G(p) = 1 − p^G − (1 − p)^G. If the update is zero on all other groups "
        "(A1), "
        "and a mixed group gains c on average, whatever G (A2), then one step of length η raises p by η c Ψ_G(p), "
        "but for terms of η². Ψ grows with G, ever more slowly: Ψ_{G+1} − Ψ_G = p(1 − p)^G + (1 − p)p^G.",
        f"Checked: this and the second difference, in fractions, on {len(identities)} points; largest error "
        f"{largest_error(identities):g}. And the mean step of θ, p = sigmoid(θ), for three ways to update, "
        f"{settings['draws']:,} drawn groups each: largest error {off:.1f} standard errors in {len(simulated)} "
        f"comparisons. "
        "GRPO and Dr.GRPO are simulated by the credit functions of this project. In closed form the three are "
        f"Ψ_G, E[√(s(1 − s))] and p(1 − p)(1 − 1/G), s being the share of right samples; here for p = {SHOWN}.",
    ]
    columns = [(estimator.name, kind) for estimator in ESTIMATORS for kind in ("exact", "simulated")]
    return Section("More samples, more mixed groups", told, [("", "G"), *columns], rows)


def _assumption(checks: Sequence[Check]) -> Section:
    gains = {
        (estimator.name, size): gain_per_mixed_group(estimator, SHOWN, size)
        for estimator in ESTIMATORS
        for size in SIZES
    }
    fall = {
        estimator.name: 1
        - min(gain_per_mixed_group(estimator, p, G) / gain_per_mixed_group(estimator, p, 2) for G in SIZES)
        for estimator in ESTIMATORS[1:]
        for p in CHANCES[:1]
    }
    rows = [
        [
            str(size),
            f"{mixed_chance(SHOWN, size):.4f}",
            *(f"{gains[estimator.name, size]:.4f}" for estimator in ESTIMATORS),
        ]
        for size in SIZES
    ]
    lost = " and ".join(f"{100 * share:.0f} % for {name}" for name, share in fall.items())
    told = [
        "Assumption A2 holds for the unit update alone, which is made to fit it. For GRPO and Dr.GRPO the gain of a "
        f"mixed group depends on G: at p = {CHANCES[0]} and up to G = {SIZES[-1]} it falls below that of G = 2 by up "
        f"to {lost}. "
        "A mixed group of two is half right, the share that moves both most; a larger one may be mixed by one sample "
        "only. "
        "It need not fall all the way: it turns towards p(1 − p)√(p(1 − p)) and p²(1 − p)².",
        "What remains true for both: the expected step grows with G, since √(s(1 − s)) and s(1 − s) are concave in s "
        "and "
        "a larger group spreads s less. But not in proportion to Ψ_G.",
    ]
    columns = [("gain per mixed group", estimator.name) for estimator in ESTIMATORS]
    return Section("What fails: assumption A2", told, [("", "G"), ("", "Ψ_G"), *columns], rows)


def _approximation() -> Section:
    rows = []
    for k in SHOWN_TRIES:
        row = [str(k)]
        for a, b in BETAS:
            rough = second_order(float(a / (a + b)), float(beta_variance(a, b)), k)
            row += [f"{float(beta_gap(a, b, k)):.4f}", _small(rough)]
        rows.append(row)
    told = [
        "Theorem A.2. With mean μ of the problems' chances p_x and f_k(p) = 1 − (1 − p)^k, pass@k is f_k(μ) − J_k. "
        "The gap J_k is never negative, and zero where all problems are equally hard (Jensen). A training that "
        "raises μ can so lower pass@k, if J_k grows by more than f_k(μ).",
        "What fails: the second-order approximation k(k − 1)/2 (1 − μ)^(k−2) Var p. It is exact for k = 2, too large "
        "for a "
        "few tries more, and says nothing at k = 256, where its factor (1 − μ)^254 is all but zero and the gap is not. "
        "What is said of pass@256 has to rest on the exact gap.",
    ]
    columns = [(f"Beta({float(a):g}, {float(b):g})", kind) for a, b in BETAS for kind in ("J_k", "second order")]
    return Section("Unequal problems cost pass@k", told, [("", "k"), *columns], rows)


def _polarisation() -> Section:
    rows = [
        [f"{float(beta_variance(a, b)):.4f}", *(f"{float(beta_pass(a, b, k)):.3f}" for k in SHOWN_TRIES)]
        for _, (a, b) in polarised()
    ]
    told = [
        f"Beta populations of problems that all have μ = {float(MEAN)}: the more polarised into solved and unsolvable "
        "ones, the lower pass@k at every k above 1, in the end no higher than the share of solved ones."
    ]
    header = [("", "variance of p"), *(("pass@k, k =", str(k)) for k in SHOWN_TRIES)]
    return Section("Polarisation", told, header, rows)


def _estimates(checks: Sequence[Check]) -> Section:
    both = [checks_of(checks, f"mean estimate of J_k: {kind}") for kind in ("unbiased", "plug-in")]
    rows = [
        [str(k), f"{float(fair.value):.4f}", f"{fair.compared:.4f}", f"{rough.compared:.4f}"]
        for k, fair, rough in zip(range(1, FEW_SAMPLES + 1), *both, strict=True)
    ]
    told = [
        "Measured are c right ones of n samples of each problem. E f_k(p_x) is estimated by 1 − C(n − c, k)/C(n, k). "
        "(1 − μ)^k is a mean of products of powers of the problems' chances, and each power of a factor has an "
        "unbiased "
        "estimate C(n − c, j)/C(n, j), so that f_k(μ), J_k and, as J_2, the variance of p_x are estimated without "
        "bias, for k up to n. "
        "They are about these problems, not those that might have been drawn; and being without bias, a small J_k or "
        "variance can come out below zero.",
        "Plug-in, with c/n for p_x, is biased: sampling noise makes equal problems look unequal. Below, the mean over "
        "every "
        f"outcome of {FEW_SAMPLES} samples of problems with chances {', '.join(map(str, FEW))}: the unbiased "
        f"estimate is off by {largest_error(both[0]):.0e} at most, plug-in by {largest_error(both[1]):.3f}. "
        "In the table of runs, the second-order column is built from the estimates of μ and of the variance, "
        "and is no unbiased estimate of anything.",
    ]
    header = [("", "k"), ("", "J_k"), ("mean of the estimate", "unbiased"), ("mean of the estimate", "plug-in")]
    return Section("What can be estimated", told, header, rows)


def _runs(runs: Sequence[Measured], settings: Mapping[str, Any]) -> Section:
    rows = []
    for run in runs:
        part = run.parts[-1]
        change = next((each for each in run.change if each.k == part.k), None)
        label = run.run.label if run.at is None else f"{run.run.label} at {run.at}"
        rows.append(
            [
                run.run.model,
                benchmark_label(run.benchmark),
                label,
                str(run.seed),
                str(run.problems),
                str(run.n),
                str(part.k),
            ]
            + [f"{part.mu:.4f}", NOTHING if math.isnan(part.variance) else f"{part.variance:.4f}"]
            + [f"{part.f_mu:.4f}", f"{part.jensen:.4f}", f"{part.passed:.4f}"]
            + [f"{part.jensen_plug_in:.4f}", _small(part.second_order)]
            + (
                [NOTHING] * 3
                if change is None
                else [f"{value:+.4f}".replace("-", "−") for value in (change.f_mu, -change.jensen, change.passed)]
            )
        )
    told = [
        f"Scale {settings['scale']}. Each run at the largest k it was scored for; theory.csv has all. The change is "
        "against the base model: that of pass@k is the sum of the other two."
    ]
    columns = ("μ", "Var p", "f_k(μ)", "J_k", "pass@k", "J_k, plug-in", "J_k, second order")
    changes = ("f_k(μ)", "−J_k", "pass@k")
    header = [("", name) for name in ("model", "benchmark", "run", "seed", "problems", "n", "k", *columns)]
    return Section("The runs", told, [*header, *(("change", name) for name in changes)], rows, left=3)


def _small(value: float) -> str:
    """Four decimals, or the order of magnitude of what they would show as zero."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 5e-5 else f"{value:.0e}".replace("-", "−")
