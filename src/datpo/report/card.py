"""A run card: what a checkpoint is, what it was trained on, what it scores and how that was found out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import Row, read_json, whole_file
from datpo.core.kinds import NAME, OBJECT, Kinds, check_kinds, whole
from datpo.report.accounts import END_SHARE, accounts
from datpo.report.markup import markdown, pipe_table
from datpo.report.runs import Results, load_results
from datpo.report.score_rows import score_rows
from datpo.report.training import Training, load_training

CAUTIONS = (
    "Intervals are 95 %, by bootstrap over problems: they say what other problems would change, not another training.",
    "Public problems may have been in the base model's own training data. Differences between runs of one base model "
    "suffer less from that than its scores do.",
)
AT_THE_END = ("reward", "entropy", "zero_signal", "response_length", "truncated", "ratio_max", "clip_share")
MADE = (
    *("temperature", "max_new_tokens", "prompt", "sampling_seed", "engine", "precision"),
    *("checker", "truncated", "missing"),
)
DATA_CARD: Kinds = {
    **dict.fromkeys(("set", "questions"), NAME),
    **dict.fromkeys(("source", "set_aside"), OBJECT),
    **dict.fromkeys(("rows", "problems"), whole()),
}


def run_card(config: Path, metrics: list[Path], logs: list[Path], data: list[Path], out: Path) -> None:
    """Write the card of one checkpoint, as Markdown.

    Args:
        config: the settings of its training, or of its base model.
        metrics: its metrics files, one for each benchmark.
        logs: its training log; none for a base model.
        data: data cards of the sets it was trained and evaluated on.
        out: the card.

    Raises:
        InputError: metrics of more than one checkpoint, a trained one without its log, a benchmark with other questions
            than its data card says, or a file that is not what it is taken for.
    """
    settings, results = read_settings(config), load_results(metrics)
    if len(results.runs) != 1 or len(results.seeds(results.runs[0])) != 1:
        raise InputError(f"{out}: a card is about one checkpoint, these metrics are about {results.runs}")
    trained = _training(settings, load_training(logs), results)
    parts = [
        *_head(results, settings),
        *trained,
        *_scores(score_rows(results)),
        *_data([_data_card(file, results) for file in data]),
        "## Cautions",
        "\n".join(f"- {markdown(caution)}" for caution in CAUTIONS),
    ]
    with whole_file(out) as handle:
        handle.write("\n\n".join(parts) + "\n")


def _head(results: Results, settings: Mapping[str, Any]) -> list[str]:
    run, first = results.runs[0], results.everything[0]
    made = settings.get("model", settings)  # of a training its base model; the settings of a base model are its own
    origin = made.get("source") or {"pre-trained here": made["pretrain"]}
    rows = [
        ["scale", results.scale],
        ["base model", f"{run.model}: {_plain(origin)}"],
        ["method", run.method],
        ["run", run.run],
        ["training seed", str(first.seed)],
        ["where in training", results.at or "its end"],
        ["checkpoint (SHA-256)", str(first.header.get("checkpoint", ""))],
    ]
    title = f"# {markdown(run.label)}, {markdown(run.model)}, seed {first.seed}"
    return [title, _listed(rows)]


def _training(settings: Mapping[str, Any], training: Sequence[Training], results: Results) -> list[str]:
    """Settings, cost and end of the training; nothing for a base model."""
    costs = accounts(results, training)
    if not costs:
        return []
    check_kinds("the settings of the training", settings, dict.fromkeys(("method", "train", "model"), OBJECT))
    (cost,), (log,) = costs.values(), training
    steps = log.until(results.at)
    last = steps.tail(max(1, round(END_SHARE * len(steps))))
    spent = [
        ["rollout steps", f"{cost.steps:,.0f}"],
        ["generated tokens", f"{cost.generated_tokens:,.0f}"],
        ["trained tokens", f"{cost.trained_tokens:,.0f}"],
        ["updates", f"{cost.updates:,.0f}"],
        ["leaves per question", f"{cost.leaves:.1f}"],
        ["tokens per question", f"{cost.tokens_per_question:.1f}"],
        ["wall time", f"{cost.seconds:,.0f} s"],
        *([f"{name.replace('_', ' ')}, last tenth of the steps", f"{last[name].mean():.4g}"] for name in AT_THE_END),
    ]
    if "validation_avg" in steps:
        looks = steps.dropna(subset=["validation_avg"])
        shown = ", ".join(f"{row.validation_avg:.3f} at step {row.step}" for row in looks.itertuples())
        spent.append(["right on the validation split", shown])
    return [
        "## Training",
        _listed([[key, _plain(value)] for key, value in settings["method"].items()], "number of the method"),
        _listed([[key, _plain(value)] for key, value in settings["train"].items()], "setting"),
        _listed(spent, "what it took"),
    ]


def _scores(frame: pd.DataFrame) -> list[str]:
    frame = frame.assign(shown=[f"{row.value:.1f} [{row.low:.1f}, {row.high:.1f}]" for row in frame.itertuples()])
    scores, at_k, made = [], [], []
    for name, rows in frame.groupby("benchmark", sort=False):
        benchmark, first = markdown(str(name)), rows.iloc[0]
        rates = [f"{first[f'rate_{rate}']:.1f}" for rate in ("truncated", "no_answer", "duplicate")]
        scores.append([benchmark, str(first.problems), str(first.n), first.shown, *rates])
        both = {metric: dict(zip(of.k, of.shown, strict=True)) for metric, of in rows.groupby("metric")}
        at_k += [[benchmark, str(k), shown, both["maj"][k]] for k, shown in both["pass"].items()]
        made.append([benchmark, *(markdown(str(first[key])) for key in MADE)])
    return [
        "## Scores, in percent, with 95 % intervals",
        pipe_table(["benchmark", "problems", "n", "avg@n", "cut off", "no answer", "duplicates"], scores, 1),
        pipe_table(["benchmark", "k", "pass@k", "maj@k"], at_k, 1),
        "## How the samples were drawn and graded",
        pipe_table(["benchmark", *(name.replace("_", " ") for name in MADE)], made, 1 + len(MADE)),
        f"Sampled with {markdown(str(frame.iloc[0].versions))}.",
    ]


def _data_card(file: Path, results: Results) -> Row:
    card: Row = read_json(file)
    check_kinds(str(file), card, DATA_CARD)
    asked = {f"benchmarks/{result.benchmark}": result for result in results.everything}.get(card["set"])
    if asked and asked.header["questions"] != card["questions"]:
        raise InputError(
            f"{asked.path}: scored on other questions than {file} has ({asked.header['questions']!r}, and "
            f"{card['questions']!r} there); evaluate the checkpoint on the problems that are there now"
        )
    return card


def _data(cards: Sequence[Row]) -> list[str]:
    rows = [
        [
            markdown(str(card["set"])),
            markdown(_plain(card["source"])),
            f"{card['rows']:,}",
            markdown(_plain(card["set_aside"])) if card["set_aside"] else "none",
            f"{card['problems']:,}",
            card["questions"][:16],
        ]
        for card in cards
    ]
    return ["## Data", pipe_table(["set", "source", "rows", "set aside", "problems", "questions (hash)"], rows, 2)]


def _listed(rows: Sequence[Sequence[str]], what: str = "") -> str:
    return pipe_table([what, ""], [[markdown(cell) for cell in row] for row in rows], 2)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
