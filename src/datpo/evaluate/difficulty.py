"""Easy, medium and hard problems, told apart by how often a model solves them (paper Figure 1).

The paper draws 12 samples for each training problem: 9-11 right is easy, 5-8 medium, 1-4 hard; problems
always or never solved carry no signal for a group of samples and are set aside. The three pools are cut to
one size, so that difficulty is the only thing in which the subsets differ.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datpo.config import read_settings
from datpo.config_checks import mistakes_in_bands
from datpo.core.errors import InputError
from datpo.core.files import Row, whole_file, whole_folder
from datpo.core.kinds import Kind, Kinds, check_kinds, list_of, map_of, or_null, whole
from datpo.core.problem import save_problems
from datpo.core.seeds import generator
from datpo.evaluate.samples import by_problem, matching_problems, read_scores, refuse_bad_keys

SETTINGS: Kinds = {
    "samples": whole(1),
    "bands": map_of(Kind("[fewest, most] right samples", lambda band: list_of(whole()).fits(band) and len(band) == 2)),
    "subset_size": or_null(whole(1)),
    "seed": whole(),
}


def split_by_difficulty(config: Path, problems: Path, scores: Path, out: Path) -> None:
    """Sort problems into subsets of equal size by how often they were solved.

    Each pool is sampled at random down to `subset_size`, or, if that is null, to the size of the smallest
    pool that is not empty (an empty pool then gives an empty file, and counts.csv says so). A problem that
    lost a sample cannot be placed and is set aside as incomplete.

    Args:
        config: YAML with `samples`, `bands` (name: [fewest, most] right samples, both included),
            `subset_size`, `seed`.
        problems: the problems.
        scores: their scores file, of `samples` samples each.
        out: folder with one NAME.jsonl for each band and counts.csv: `subset,fewest,most,pool,size`, the
            problems set aside in the rows none_right, all_right, between_bands and incomplete.

    Raises:
        InputError: bad settings, another number of samples in the scores file, other problems than the
            scores', or a pool smaller than the `subset_size` that was asked for.
    """
    settings = _settings(config)
    header, rows = read_scores(scores)
    if header["n"] != settings["samples"]:
        raise InputError(
            f"{scores}: {header['n']} samples a problem, but {config} places them by {settings['samples']}"
        )
    known = matching_problems(scores, header, rows, problems)
    refuse_bad_keys(scores, rows)
    pools = _pools(rows, settings)
    size = _subset_size(settings, pools, scores)
    subsets = {
        name: _drawn([id_ for id_ in known if id_ in pools[name]], size, settings["seed"], name)
        for name in settings["bands"]
    }
    with whole_folder(out) as folder:
        for name, ids in subsets.items():
            save_problems(folder / f"{name}.jsonl", [known[id_] for id_ in ids])
        _write_counts(folder / "counts.csv", settings, pools, subsets)


def _pools(rows: Sequence[Row], settings: Mapping[str, Any]) -> dict[str, set[str]]:
    """The problems of each band, and of each reason for setting one aside."""
    pools: dict[str, set[str]] = {
        name: set() for name in (*settings["bands"], "none_right", "all_right", "between_bands", "incomplete")
    }
    for problem, group in by_problem(rows).items():
        right = sum(row["verdict"] == "right" for row in group)
        inside = [name for name, (fewest, most) in settings["bands"].items() if fewest <= right <= most]
        if any(row["verdict"] == "missing" for row in group):
            pools["incomplete"].add(problem)
        elif inside:
            pools[inside[0]].add(problem)
        else:
            at_end = {0: "none_right", len(group): "all_right"}
            pools[at_end.get(right, "between_bands")].add(problem)
    return pools


def _subset_size(settings: Mapping[str, Any], pools: Mapping[str, set[str]], scores: Path) -> int:
    sizes = {name: len(pools[name]) for name in settings["bands"]}
    asked = settings["subset_size"]
    if asked is None:
        return min((size for size in sizes.values() if size), default=0)
    small = [f"{name} has {size}" for name, size in sizes.items() if size < asked]
    if small:
        raise InputError(
            f"{scores}: subset_size {asked} is more than there are problems: {', '.join(small)}; "
            "lower subset_size or set it to null"
        )
    return int(asked)


def _drawn(pool: Sequence[str], size: int, seed: int, name: str) -> list[str]:
    """A random subset of the pool, in the order of the problems file."""
    if len(pool) <= size:
        return list(pool)
    chosen = generator(seed, "difficulty", name).choice(len(pool), size=size, replace=False)
    return [pool[index] for index in sorted(chosen)]


def _write_counts(
    path: Path,
    settings: Mapping[str, Any],
    pools: Mapping[str, set[str]],
    subsets: Mapping[str, Sequence[str]],
) -> None:
    with whole_file(path) as handle:
        table = csv.writer(handle, lineterminator="\n")
        table.writerow(["subset", "fewest", "most", "pool", "size"])
        for name, pool in pools.items():
            fewest, most = settings["bands"].get(name, ("", ""))
            table.writerow([name, fewest, most, len(pool), len(subsets.get(name, ()))])


def _settings(config: Path) -> dict[str, Any]:
    settings = read_settings(config)
    check_kinds(str(config), settings, SETTINGS, known_only=True)
    if not settings["bands"]:
        raise InputError(f"{config}: 'bands' is empty, so there is no subset to make")
    for mistake in mistakes_in_bands(settings):
        raise InputError(f"{config}: {mistake}")
    return settings
