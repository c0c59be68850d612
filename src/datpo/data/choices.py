"""Multiple-choice questions in one schema, whoever wrote them; and a smaller set with the categories' shares."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from string import ascii_uppercase as LETTERS
from typing import Any

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import located_rows, write_jsonl
from datpo.core.rows import object_of
from datpo.core.seeds import generator
from datpo.data.choice_rows import read_questions, read_rows
from datpo.data.files import some


@dataclass(frozen=True)
class Question:
    """One question with its options in the order they are shown; `answer` is the letter of the right one."""

    id: str
    question: str
    options: tuple[str, ...]
    answer: str
    category: str = ""


def fetch_questions(config: Path, out: Path) -> None:
    """Write the questions that one entry of `out_of_domain` asks for, once they have passed all checks.

    Args:
        config: YAML with `problems`, which is `{hub, subset, revision, split}` or `{path}` and may have `drop` (ids to
            set aside), `count` (rows of the source, or null), `stratified` (size of the subset, or null) and `seed`.
        out: JSON Lines `{id, question, options, answer, category}`.

    Raises:
        InputError: no access to the source, another number of rows than `count`, or a row that is no question.
    """
    settings = read_settings(config)
    entry, count = settings["problems"], settings["count"]
    place, rows = read_rows(entry)
    if count is not None and len(rows) != count:
        raise InputError(f"{place}: {len(rows)} rows where `count` says {count}")
    drop = entry.get("drop", ())
    questions = [Question(**row) for row in read_questions(place, rows, drop, settings["seed"])]
    check_questions(place, questions)
    aside = f": {', '.join(map(str, drop))}" if drop else ""
    print(
        f"{place}: {len(questions)} questions of {len(rows)} rows; dropped {len(rows) - len(questions)}{aside}",
        file=sys.stderr,
    )
    if settings["stratified"] is not None:
        questions = stratified(questions, settings["stratified"], settings["seed"], place)
    write_jsonl(out, map(asdict, questions))


def load_questions(path: Path) -> list[Question]:
    """Read a file that `fetch_questions` wrote.

    Raises:
        InputError: a row has other keys, or `check_questions` finds a mistake.
    """
    keys = tuple(Question.__dataclass_fields__)
    rows = [object_of(place, row, keys, ()) for place, row in located_rows(path)]
    questions = [Question(**{**row, "options": tuple(row["options"])}) for row in rows]
    check_questions(str(path), questions)
    return questions


def harness_data(questions: str, **metadata: object) -> dict[str, Any]:
    """The same file as lm-evaluation-harness wants it: the task files of workflow/out_of_domain/ name this function.

    Its usual reader of JSON Lines guesses what kind a column is, and would take one of dates for moments in time.

    Args:
        questions: a file that `fetch_questions` wrote.
        metadata: what else the harness knows of the task.
    """
    from datasets import Dataset  # a slow import that only the harness needs

    return {"test": Dataset.from_list([asdict(question) for question in load_questions(Path(questions))])}


def check_questions(place: str, questions: Sequence[Question]) -> None:
    """Refuse a set in which an answer cannot be told right from wrong.

    Raises:
        InputError: no questions, an id that occurs twice, an empty text, fewer than two or equal options, or an answer
            that is the letter of none of them; the ids are listed.
    """
    if not questions:
        raise InputError(f"{place}: no questions")
    times = Counter(question.id for question in questions)
    mistakes = {
        "occur twice": [name for name, number in times.items() if number > 1],
        "have an empty question or option": [q.id for q in questions if not all((q.id, q.question, *q.options))],
        f"have not 2 to {len(LETTERS)} options": [q.id for q in questions if not 2 <= len(q.options) <= len(LETTERS)],
        "have two equal options": [q.id for q in questions if len(set(q.options)) < len(q.options)],
        "have an answer that is the letter of no option": [
            q.id for q in questions if len(q.answer) != 1 or q.answer not in LETTERS[: len(q.options)]
        ],
    }
    lines = [f"{place}: questions that {what}: {some(ids)}" for what, ids in mistakes.items() if ids]
    if lines:
        raise InputError("\n".join([*lines, "correct these rows, or set them aside with `drop`"]))


def stratified(questions: Sequence[Question], size: int, seed: int, place: str) -> list[Question]:
    """A subset in which every category has its share, in the order of the whole.

    The draw depends on `seed` and, category by category, on the ids: neither the order of the rows nor the questions of
    another category of the same size change it.

    Raises:
        InputError: the subset would not be smaller than the whole, or a question has no category.
    """
    if size >= len(questions):
        raise InputError(f"{place}: `stratified: {size}` of {len(questions)} questions is no subset; leave it out")
    if without := [question.id for question in questions if not question.category]:
        raise InputError(f"{place}: `stratified` needs a category of every question; without one: {some(without)}")
    members: dict[str, list[str]] = {}
    for question in questions:
        members.setdefault(question.category, []).append(question.id)
    chosen: set[str] = set()
    for category, number in shares({name: len(ids) for name, ids in members.items()}, size).items():
        ids = sorted(members[category])
        order = generator(seed, "stratified", category).permutation(len(ids))
        chosen.update(ids[index] for index in order[:number])
    return [question for question in questions if question.id in chosen]


def shares(sizes: Mapping[str, int], size: int) -> dict[str, int]:
    """How many of `size` each category gets in proportion: whole parts first, then the largest remainders.

    Of equal remainders the name that is first in the alphabet is served first.
    """
    total = sum(sizes.values())
    given = {name: size * number // total for name, number in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: (-(size * sizes[name] % total), name))
    for name in by_remainder[: size - sum(given.values())]:
        given[name] += 1
    return given
