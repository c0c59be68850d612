"""A data card: where a problem set came from, what was left out, and what is in it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datpo.core.files import Row
from datpo.core.problem import Problem, questions_hash
from datpo.data.checks import REASONS, Aside
from datpo.data.files import file_hash
from datpo.evaluate.verify import DOMAINS

# Keys of a data entry that say where problems come from; the others say how they are read and what must hold.
PLACE = ("hub", "revision", "subset", "data_files", "split", "url", "path", "sha256", "levels")


def fingerprint(problems: Sequence[Problem]) -> str:
    """SHA-256 over ids, texts and keys, in any order: what a data entry's `fingerprint` pins."""
    rows = sorted((problem.id, problem.problem, problem.answer) for problem in problems)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def data_card(
    settings: Mapping[str, Any],
    other_levels: int,
    kept: Sequence[Problem],
    aside: Sequence[Aside],
    taken: Sequence[Problem],
    problems: Sequence[Problem],
) -> Row:
    """The card of a set of `problems`, drawn from those `taken` of what was `kept` of its source.

    `rows` = `of_other_levels` + the `set_aside` + `not_taken` + `in_other_set` + `problems`. `fingerprint` is that of
    all that was kept, the same for a training set and the validation set drawn from it; `questions` is the set's own,
    as in the header of samples.
    """
    entry = settings["problems"]
    place = {key: entry[key] for key in PLACE if key in entry}
    if "path" in entry:
        place["sha256"] = file_hash(entry["path"])
    if "levels" in entry or "take" in entry or "from_train" in settings:
        place["seed"] = settings["seed"]
    reasons = Counter(each.reason for each in aside)
    return {
        "kind": "data card",
        "version": 1,
        "set": settings["set"],
        "domain": settings["domain"],
        "checker": DOMAINS[settings["domain"]].checker,
        "source": place,
        "rows": other_levels + len(kept) + len(aside),
        **({"of_other_levels": other_levels} if "of_levels" in entry else {}),
        "set_aside": {reason: reasons[reason] for reason in REASONS if reasons[reason]},
        **({"not_taken": len(kept) - len(taken)} if "take" in entry else {}),
        "in_other_set": len(taken) - len(problems),
        "problems": len(problems),
        "levels": _counted(problem.level for problem in problems),
        "subjects": _counted(problem.subject for problem in problems),
        "fingerprint": fingerprint(kept),
        "questions": questions_hash(problems),
    }


def _counted(values: Iterable[Any]) -> dict[str, int]:
    """How often each value occurs, in the values' order; "none" for None, last."""
    counts = Counter(values)
    known = sorted(value for value in counts if value is not None)
    return {str(value): counts[value] for value in known} | ({"none": counts[None]} if None in counts else {})
