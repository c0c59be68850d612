"""What has to be said beneath the table of a study for its numbers to be read rightly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datpo.report.accounts import account
from datpo.report.notes import MARKS, SCORES, UNMARKED, other_scale, sample_notes, uneven_budgets
from datpo.report.runs import Results, Run, benchmark_label
from datpo.report.studies.published import Published
from datpo.report.studies.study import Study
from datpo.report.training import Training

MAJORITY = (
    "maj@k is the expected accuracy of the answer that most of k samples agree on, a tie shared between its answers; "
    "samples without an answer do not vote."
)
WALL_TIME = (
    "Hours and seconds are wall time of the rollouts and updates on the machine that trained, whatever else it had to "
    "do; validation and saving are left out. The paper's are of one A100. One training has one duration, which has no "
    "interval."
)
TOKENS = (
    "Tokens per question are those generated in training, a shared prefix counted once, and leaves all rollouts, "
    "trained or not; both are means over all questions, which have no interval here."
)


PAIRED = "Differences to {against} are paired by problem, seeds averaged."


def study_notes(
    study: Study,
    results: Results | None,
    training: Mapping[Run, Sequence[Training]],
    published: Published,
    *,
    marked: bool,
) -> list[str]:
    """The notes of a study's table, one paragraph each, as plain text; `marked` if some number is the best."""
    notes = [_scale(study, results, published)]
    if results is not None:
        notes += [*sample_notes(results), *_other_benchmarks(results, published)]
    notes.append(_seeds(study, results))
    if results is not None:
        notes += [
            *SCORES,
            MARKS if marked else UNMARKED,
            *([PAIRED.format(against=study.against.label)] if study.against else []),
        ]
    notes += [MAJORITY] if "maj" in study.columns else []
    notes += [WALL_TIME] if any(column.startswith(("hours", "seconds")) for column in study.columns) else []
    return [*notes, *_budgets(study, training)]


def _scale(study: Study, results: Results | None, published: Published) -> str:
    if study.scale != "paper":
        return other_scale(study.scale)
    if not published.values:
        return "Scale: paper, which has no such table."
    known = {(place.model.lower(), place.label) for place in published.values}
    unknown = [
        f"{row.label} of {model}"
        for model in study.models
        for row in study.rows
        if (model.lower(), row.label) not in known
    ]
    less = f" It has no numbers for {', '.join(unknown)}." if unknown else ""
    if results is not None and len(study.benchmarks) > 1 and not published.averages_over(study.benchmarks):
        less += " Its averages are over other benchmarks, or there are none, and are left out."
    return (
        "Scale: paper. Beside our value stands the paper's, and ours minus the paper's in parentheses; "
        f"the paper publishes one training seed and no intervals.{less}"
    )


def _other_benchmarks(results: Results, published: Published) -> list[str]:
    """What is asked where the paper asks something else: which questions, and how to tell that they are the same."""
    paper = {name.lower() for name in published.benchmarks}
    told = []
    for benchmark in results.benchmarks:
        header = results.of(results.runs[0], benchmark)[0].header
        if benchmark_label(benchmark).lower() not in paper:
            told.append(
                f"{benchmark}, {header['problems']} questions of the domain {header['domain']}, fingerprint "
                f"{header['questions'][:16]}, {header['n']} samples each"
            )
    if not told:
        return []
    shown = (
        f"Here the paper shows {', '.join(published.benchmarks)}. This table has others:" if paper else "Benchmarks:"
    )
    return [
        f"{shown} {'; '.join(told)}. The file of their questions is named in the configuration, and their fingerprint "
        "in their data cards."
    ]


def _seeds(study: Study, results: Results | None) -> str:
    seeds = ", ".join(map(str, study.seeds))
    if len(study.seeds) == 1:
        return f"Training seed: {seeds}. A row of one seed says nothing about the spread between trainings."
    base = "; the untrained model has none" if any(not row.trained for row in study.rows) else ""
    return f"Training seeds: {seeds} of every row{base}. ± is the standard deviation between them."


def _budgets(study: Study, training: Mapping[Run, Sequence[Training]]) -> list[str]:
    """Tokens per question of each row, if no column has them, and whether all rows were trained on as many."""
    told = [TOKENS] if training else []
    for model in study.models:
        took = {row.label: account([log.steps for log in training[row.of(model)]]) for row in study.rows if row.trained}
        if took and "tokens_per_question" not in study.columns:
            each = ", ".join(f"{label} {one.tokens_per_question:,.1f}" for label, one in took.items())
            told.append(f"{model}: generated tokens per question: {each}.")
        told += uneven_budgets(model, {label: one.generated_tokens for label, one in took.items()})
    return told
