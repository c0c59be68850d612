"""What has to be said beneath a table for its numbers to be read rightly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datpo.report.accounts import END_SHARE, Account
from datpo.report.paper import Paper, order_sentences
from datpo.report.runs import Results, Run, benchmark_label
from datpo.report.scores import Column, Score, column_k, difference

EVEN = 0.05  # budgets further apart than this are no equal budgets
SCORES = (
    "Values are percent. avg@k is the share of right samples and pass@k the unbiased estimate (Chen et al. "
    "2021), both from all n samples of a problem, averaged over problems; with several seeds, the mean over "
    "seeds. The average weighs every benchmark the same.",
    "Brackets (in LaTeX the lower and upper index) are 95 % intervals by bootstrap over problems: they say "
    "what other problems would change, not what other training seeds would. Where all problems agree the bootstrap "
    "has nothing to draw from and the interval has no width. ± is the standard deviation between training seeds.",
)
MARKS = (
    "Bold: above every other run of the model, each paired difference having a 95 % interval without 0 (not "
    "corrected for the number of comparisons). Underlined: where one is bold, above all others in the same way."
)
UNMARKED = (
    "No number is marked as the best: none is above those of all other runs of its model by more than the 95 % "
    "intervals of the paired differences."
)
DIFFERENCES_HEADING = "Paired differences in points, with 95 % intervals"
READING = (
    "Differences are paired by problem, seeds averaged; in averages all benchmarks weigh the same.",
    "The untrained Base has no training budget. Budgets are means over seeds. Generated tokens count a shared prefix "
    "once, trained tokens count a token for each block or leaf path it is trained in, and each epoch; leaves are all "
    "rollouts, those that were not trained included. Entropy is in nats per token, "
    f"over the last {100 * END_SHARE:.0f} % of the steps; zero-signal is the share of questions whose "
    "rollouts all had the same reward.",
)
SETTINGS = ("temperature", "max_new_tokens", "checker")


def table_notes(
    results: Results, scores: Mapping[tuple[Run, Column], Score], costs: Mapping[Run, Account], paper: Paper
) -> list[str]:
    """The notes of Table 2, one paragraph each, as plain text."""
    return [
        _scale(results, paper),
        *sample_notes(results),
        _seeds(results),
        *SCORES,
        MARKS if any(score.mark for score in scores.values()) else UNMARKED,
        *READING,
        *_uneven_budgets(results, costs),
        *order_sentences(
            results,
            paper,
            lambda run, column: scores[run, column].interval.value,
            lambda a, b, column: difference(results, a, b, column),
        ),
    ]


def sample_notes(results: Results) -> list[str]:
    """How the samples behind the scores were drawn and graded, and what was lost on the way."""
    return [
        *(_benchmark(results, benchmark) for benchmark in results.benchmarks),
        _lost(results),
        *_versions(results),
    ]


def other_scale(scale: str) -> str:
    """Why the paper's numbers do not stand in a table of another scale."""
    return (
        f"Scale: {scale}, which is not the paper's: models, problems and budgets are others, so "
        "these numbers are not to be compared with the paper's, which are left out."
    )


def _scale(results: Results, paper: Paper) -> str:
    if results.scale == "paper":
        unknown = [model for model in results.models if not paper.knows(model)]
        less = f" It has no numbers for {', '.join(unknown)}." if unknown else ""
        if {benchmark_label(name) for name in results.benchmarks} != set(paper.benchmarks):
            less += " Its averages are over other benchmarks and left out."
        return (
            "Scale: paper. Beside our value stands the paper's, and ours minus the paper's in parentheses; "
            f"the paper publishes one training seed and no intervals.{less}"
        )
    return other_scale(results.scale)


def _benchmark(results: Results, benchmark: str) -> str:
    header = results.of(results.runs[0], benchmark)[0].header
    problems = len(results.of(results.runs[0], benchmark)[0].at_k(1))
    settings = ", ".join(f"{key.replace('_', ' ')} {header[key]}" for key in SETTINGS)
    prompts = {run.model: results.of(run, benchmark)[0].header["prompt"] for run in results.runs}
    told = {model: _prompt(each) for model, each in prompts.items()}
    if len(set(told.values())) == 1:
        settings += f", {next(iter(told.values()))}"
    else:
        settings += "".join(f", {model}: {prompt}" for model, prompt in told.items())
    k = column_k(results, (benchmark, "pass"))
    return f"{benchmark_label(benchmark)}: {problems} problems, n = {header['n']} samples each, k = {k}; {settings}."


def _prompt(prompt: Mapping[str, Any]) -> str:
    examples = prompt.get("examples")
    shown = f" (worked examples before it: {len(examples)})" if examples else ""
    return f"{prompt['template']} prompt {prompt['format']!r}{shown}"


def _lost(results: Results) -> str:
    def worst(rate: str) -> float:
        return max(float(result.document["rates"][rate]) for result in results.everything)

    return (
        f"At most {worst('truncated'):.1%} of a run's samples on a benchmark were cut off by the token "
        f"limit, {worst('no_answer'):.1%} gave no answer, {worst('timeout'):.1%} ran out the checker's time and "
        f"{worst('missing'):.1%} were lost to engine errors."
    ).replace("%", " %")


def _versions(results: Results) -> list[str]:
    """Which software drew the samples, if not the same drew all."""
    drew: dict[str, list[str]] = {}
    for result in results.everything:
        versions = ", ".join(f"{name} {number}" for name, number in sorted(result.header["versions"].items()))
        drew.setdefault(versions, []).append(f"{result.run} seed {result.seed} on {benchmark_label(result.benchmark)}")
    if len(drew) == 1:
        return []
    told = "; ".join(f"{versions} for {', '.join(whose)}" for versions, whose in drew.items())
    return [f"Samples were drawn with different versions of the software, from which equal seeds may differ: {told}."]


def _seeds(results: Results) -> str:
    counts: dict[int, list[str]] = {}
    for run in results.runs:
        name = run.label if len(results.models) == 1 else f"{run.model} {run.label}"
        counts.setdefault(len(results.seeds(run)), []).append(name)
    parts = [f"{count} for {', '.join(names)}" for count, names in sorted(counts.items())]
    one = " A row of one seed says nothing about the spread between trainings." if 1 in counts else ""
    return f"Training seeds: {'; '.join(parts)}.{one}"


def _uneven_budgets(results: Results, costs: Mapping[Run, Account]) -> list[str]:
    return [
        note
        for model in results.models
        for note in uneven_budgets(
            model, {run.label: costs[run].generated_tokens for run in results.of_model(model) if run in costs}
        )
    ]


def uneven_budgets(model: str, tokens: Mapping[str, float]) -> list[str]:
    """Which row was trained on most and which on fewest tokens, if not all on about as many.

    Args:
        model: whose rows these are.
        tokens: generated in training, by row.
    """
    if not tokens:
        return []
    least, most = min(tokens, key=tokens.__getitem__), max(tokens, key=tokens.__getitem__)
    apart = tokens[most] / tokens[least] - 1
    if apart <= EVEN:
        return []
    told = f"{most} generated {100 * apart:.0f} % more tokens in training than {least}"
    return [f"{model}: budgets are not equal: {told}."]
