"""Rows of multiple-choice questions, from a local file or the Hugging Face hub, in any of three ways of writing them.

* ours: `id`, `question` or `problem`, `options`, `answer` (a letter), and perhaps `category` or `subject`, `level`,
  `source`. A `problem` may have its options appended as lines `(A) ...`; they are taken off.
* MMLU-Pro: `question_id`, `question`, `options`, `answer`, `answer_index`, `category`, `cot_content`, `src`.
* GPQA: `Record ID`, `Question`, `Correct Answer`, `Incorrect Answer 1` to `3`, `High-level domain` or `Subdomain`. Its
  options come in an order that is drawn anew for each record id. What reviewers wrote stands in dozens of further
  columns, which are not read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase as LETTERS
from typing import Any, NamedTuple

from huggingface_hub.errors import GatedRepoError

from datpo.core.errors import InputError
from datpo.core.files import Row, read_jsonl
from datpo.core.seeds import generator
from datpo.data.files import some, text_of

WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


class Writing(NamedTuple):
    """One way of writing a question: the columns it needs, the id's first, and all it may have (None: any)."""

    needed: tuple[str, ...]
    known: tuple[str, ...] | None
    read: Callable[[str, Mapping[str, Any], int], Row]


def read_rows(entry: Mapping[str, Any]) -> tuple[str, list[Row]]:
    """Where the rows come from, in words, and all of them as they are.

    Args:
        entry: `{path}`, a file that ends in .jsonl, .csv or .parquet; or `{hub, revision, subset, split}`.

    Raises:
        InputError: there is no such file or data set, or no access to it.
    """
    return (entry["path"], _from_file(Path(entry["path"]))) if "path" in entry else _from_hub(entry)


def read_questions(place: str, rows: Sequence[Row], drop: Iterable[str], seed: int) -> list[Row]:
    """The rows as `{id, question, options, answer, category}`, without those whose ids are in `drop`.

    Raises:
        InputError: the columns are those of no way of writing, or of one with further ones; they are named. Or a row's
            values are of the wrong kind, or an id in `drop` is not there.
    """
    columns = {str(name): None for row in rows for name in row}
    fitting = [writing for writing in WRITINGS if set(writing.needed) <= set(columns)]
    if not fitting:
        ways = "; ".join(", ".join(writing.needed) for writing in WRITINGS)
        raise InputError(f"{place}: no questions are written in the columns {', '.join(columns)}; known are: {ways}")
    writing = fitting[0]
    if writing.known is not None and (unknown := [name for name in columns if name not in writing.known]):
        raise InputError(
            f"{place}: unknown columns {', '.join(unknown)}; remove them, known are {', '.join(writing.known)}"
        )
    ids = [str(row.get(writing.needed[0])).strip() for row in rows]
    drop = {str(name) for name in drop}
    if missing := drop - set(ids):
        raise InputError(f"{place}: ids under `drop` that are not there: {some(missing)}")
    return [
        _read(f"{place}: row {number}", writing, row, seed)
        for number, (name, row) in enumerate(zip(ids, rows, strict=True), start=1)
        if name not in drop
    ]


def _read(place: str, writing: Writing, row: Mapping[str, Any], seed: int) -> Row:
    for name in writing.needed:
        if row.get(name) is None:
            raise InputError(f"{place}: column {name!r} is empty")
    made = writing.read(place, row, seed)
    return {key: value if isinstance(value, tuple) else text_of(place, key, value) for key, value in made.items()}


def _ours(place: str, row: Mapping[str, Any], seed: int) -> Row:
    options = _options(place, row["options"])
    text = row.get("question")
    if text is None:
        text = row.get("problem") or ""
        appended = r"\s+".join(
            rf"\({letter}\)\s*{re.escape(option)}" for letter, option in zip(LETTERS, options, strict=False)
        )
        text = re.sub(rf"{appended}\s*\Z", "", text) if isinstance(text, str) else text
    category = row.get("category") or row.get("subject") or ""
    return {"id": row["id"], "question": text, "options": options, "answer": row["answer"], "category": category}


def _mmlu_pro(place: str, row: Mapping[str, Any], seed: int) -> Row:
    options, letter, index = _options(place, row["options"]), row["answer"], row["answer_index"]
    if type(index) is not int or letter != LETTERS[index : index + 1]:
        raise InputError(
            f"{place}: question {row['question_id']}: `answer` {letter!r} is not `answer_index` {index!r}; correct it, "
            "or set it aside with `drop`"
        )
    return {
        "id": row["question_id"],
        "question": row["question"],
        "options": options,
        "answer": letter,
        "category": row["category"],
    }


def _gpqa(place: str, row: Mapping[str, Any], seed: int) -> Row:
    name = text_of(place, "Record ID", row["Record ID"])
    right_first = [text_of(place, column, row[column]) for column in ("Correct Answer", *WRONG)]
    order = generator(seed, "options", name).permutation(len(right_first)).tolist()
    return {
        "id": name,
        "question": row["Question"],
        "options": tuple(right_first[index] for index in order),
        "answer": LETTERS[order.index(0)],
        "category": row.get("High-level domain") or row.get("Subdomain") or "",
    }


def _options(place: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or any(not isinstance(option, str) for option in value):
        raise InputError(f"{place}: `options` must be a list of texts, not {value!r}")
    return tuple(text_of(place, "options", option) for option in value)


_OURS = ("id", "question", "problem", "options", "answer", "category", "subject", "level", "source")
_MMLU_PRO = ("question_id", "question", "options", "answer", "answer_index", "category", "cot_content", "src")
WRITINGS = (
    Writing(("id", "options", "answer"), _OURS, _ours),
    Writing(_MMLU_PRO[:6], _MMLU_PRO, _mmlu_pro),
    Writing(("Record ID", "Question", "Correct Answer", *WRONG), None, _gpqa),
)


def _from_file(path: Path) -> list[Row]:
    if path.suffix == ".jsonl":
        return read_jsonl(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix == ".csv":
        return list(_csv_rows(path))
    if path.suffix == ".parquet":
        from datasets import Dataset  # a slow import
        from datasets.exceptions import DatasetsError

        try:
            rows: list[Row] = Dataset.from_parquet(str(path), keep_in_memory=True).to_list()
        except (DatasetsError, OSError, ValueError, RuntimeError) as error:
            raise InputError(f"{path}: cannot be read as Parquet ({' '.join(str(error).split())[:300]})") from None
        return rows
    raise InputError(f"{path}: questions are read from files that end in .jsonl, .csv or .parquet")


def _csv_rows(path: Path) -> Iterator[Row]:
    """The rows of a CSV file, each with a cell for every column: one more or less, and all that follow have moved."""
    with open(path, encoding="utf-8-sig", newline="") as handle:
        reader = csv.reader(handle)
        try:
            columns = next(reader, [])
            for cells in filter(None, reader):
                if len(cells) != len(columns):
                    raise InputError(
                        f"{path}: the row {cells[0]!r:.80} that ends in line {reader.line_num} has {len(cells)} cells "
                        f"for {len(columns)} columns; put quotation marks round a cell with a comma"
                    )
                yield dict(zip(columns, cells, strict=True))
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 text ({error})") from None
        except csv.Error as error:
            raise InputError(
                f"{path}: line {reader.line_num}: no CSV ({error}); is a quotation mark missing?"
            ) from None


def _from_hub(entry: Mapping[str, Any]) -> tuple[str, list[Row]]:
    from datasets import load_dataset  # a slow import
    from datasets.exceptions import DatasetsError

    hub, revision, split = entry["hub"], entry["revision"], entry.get("split", "train")
    try:
        rows = load_dataset(hub, entry.get("subset"), revision=revision, split=split).to_list()
    except (DatasetsError, OSError, ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())[:300]
        raise InputError(f"{_remedy(hub, revision, error)} ({said})") from None
    return f"{hub}@{revision}:{split}", rows


def _remedy(hub: str, revision: str, error: BaseException | None) -> str:
    """What to do about a data set that cannot be loaded; the hub says somewhere behind the error that it is gated."""
    while error is not None:
        if isinstance(error, GatedRepoError) or "gated" in str(error):
            return (
                f"{hub} is gated: accept its authors' terms at https://huggingface.co/datasets/{hub}, then run "
                "`hf auth login`, or set HF_TOKEN, on the machine that starts Snakemake; or give the `path` of a file"
            )
        error = error.__cause__ or error.__context__
    return (
        f"{hub} at {revision} cannot be loaded; check its name, `revision`, `subset`, `split` and the network, or give "
        "the `path` of a local file"
    )
