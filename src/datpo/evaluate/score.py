"""From samples to scores: a verdict for every sample, and which answers of a problem mean the same.

Sampling is dear and scoring is cheap, so they are separate files: a better verifier never draws a sample
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import Row, write_jsonl
from datpo.core.problem import Problem
from datpo.evaluate import verify
from datpo.evaluate.samples import by_problem, matching_problems, read_samples, refuse_bad_keys, scores_header
from datpo.progress import ProgressLines

BATCH = 512  # samples graded between two progress lines


def score_file(config: Path, samples: Path, problems: Path, out: Path) -> None:
    """Grade every sample against its problem's key and group equal answers.

    A sample cut off by the token limit has no final answer, even with a box in its text: its verdict is
    "no_answer". With `truncated: graded` such texts are graded like the others. A sample lost to an engine
    error (`text` null) is "missing".

    Args:
        config: YAML with `truncated`, "wrong" or "graded", and `checker`, a name of `verify.CHECKERS`.
        samples: a samples file.
        problems: the problems it was drawn for.
        out: the scores file; its header is the samples' header with the checker and the SHA-256 of samples and keys.

    Raises:
        InputError: an incomplete file, other problems than the samples', an unknown domain or checker, or keys the
            checker cannot parse (all of them are listed).
    """
    header, rows = read_samples(samples)
    known = matching_problems(samples, header, rows, problems)
    settings = read_settings(config)
    domain, truncated = verify.checker_of(header["domain"], settings["checker"]), settings["truncated"]
    if truncated not in ("graded", "wrong"):
        raise InputError(f"{config}: `truncated` must be 'graded' or 'wrong', not {truncated!r}")
    scored = _graded(rows, known, domain, truncated)
    refuse_bad_keys(problems, scored)
    progress = ProgressLines("compare answers", len(known), "problem")
    for name, group in by_problem(scored).items():
        for row, number in zip(group, answer_classes(domain, known[name], _answers(group)), strict=True):
            row["class"] = number
        progress.advance()
    write_jsonl(out, [scores_header(header, rows, samples, known, domain.checker, truncated), *scored])


def answer_classes(domain: verify.Domain, problem: Problem, answers: Sequence[str | None]) -> list[int | None]:
    """Which of the answers to one problem mean the same: a class number for each, None for no answer.

    Answers are taken in sample order and compared with the first member of each class there is, never with
    the key. The order matters only where the checker is not transitive.
    """
    representatives: list[str] = []
    seen: dict[str, int] = {}
    for answer in answers:
        if answer is None or answer in seen:
            continue
        equal = (at for at, first in enumerate(representatives) if domain.equivalent(problem, first, answer))
        seen[answer] = next(equal, len(representatives))
        if seen[answer] == len(representatives):
            representatives.append(answer)
    return [None if answer is None else seen[answer] for answer in answers]


def _graded(rows: Sequence[Row], known: Mapping[str, Problem], domain: verify.Domain, truncated: str) -> list[Row]:
    """Score rows without classes, in the order of the samples."""
    progress = ProgressLines("score", len(rows), "sample")
    scored: list[Row] = []
    for at in range(0, len(rows), BATCH):
        batch = rows[at : at + BATCH]
        cut = [row["finish"] == "length" and truncated == "wrong" for row in batch]
        pairs = [
            (known[row["problem"]], row["text"])
            for row, without in zip(batch, cut, strict=True)
            if row["text"] is not None and not without
        ]
        verdicts = iter(domain.grade_all(pairs))
        for row, without in zip(batch, cut, strict=True):
            if row["text"] is None:
                scored.append(_score(row, "missing", None))
            elif without:
                scored.append(_score(row, "no_answer", None))
            else:
                verdict = next(verdicts)
                scored.append(_score(row, verdict.verdict, verdict.answer))
        progress.advance(len(batch))
    return scored


def _score(row: Row, verdict: str, answer: str | None) -> Row:
    return {
        "problem": row["problem"],
        "sample": row["sample"],
        "verdict": verdict,
        "answer": answer,
        "class": None,
        "tokens": row["tokens"],
        "finish": row["finish"],
    }


def _answers(group: Sequence[Row]) -> list[str | None]:
    """What each sample votes for: nothing unless the checker came to a verdict on an answer."""
    return [row["answer"] if row["verdict"] in ("right", "wrong") else None for row in group]
