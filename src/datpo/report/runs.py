"""What a report is made of: the runs, what each checkpoint scored, and how it was trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from datpo.core.errors import InputError
from datpo.core.files import Row
from datpo.evaluate.metrics import values_at_k
from datpo.report.documents import read_metrics

# The paper's order of rows (Table 2); a method that is not in it stands behind.
METHOD_LABELS = {
    "base": "Base",
    "grpo": "GRPO",
    "dr_grpo": "Dr.GRPO",
    "treerl": "TreeRL",
    "attnrl": "AttnRL",
    "datpo": "DATPO",
}
BENCHMARK_LABELS = {
    "math500": "MATH500",
    "aime2026": "AIME26",
    "aime2025": "AIME25",
    "aime2024": "AIME24",
    "aime26": "AIME26",
    "aime25": "AIME25",
    "aime24": "AIME24",
    "amc23": "AMC23",
}
# What has to be the same in all runs for their scores on a benchmark to be comparable: what was asked, how samples were
# drawn and graded (in the header), how they were counted (in the metrics' settings).
SHARED_SETTINGS = (
    *("n", "problems", "questions", "keys_sha256", "domain", "temperature", "max_new_tokens", "sampling_seed"),
    *("engine", "precision", "checker", "truncated"),
)
COUNTED = ("missing", "runs")
RESAMPLED = ("bootstrap", "seed")  # and, across benchmarks, how intervals are drawn


@dataclass(frozen=True)
class Run:
    """One way of training one model: a method with one set of numbers, over all its seeds."""

    model: str
    method: str
    run: str

    def __str__(self) -> str:
        return f"{self.model}/{self.method}/{self.run}"

    @property
    def named_after_method(self) -> bool:
        """Whether it is the method as it is, not a variant of it."""
        return self.run == self.method

    @property
    def label(self) -> str:
        """`DATPO`, or `DATPO (run)` for a variant."""
        method = METHOD_LABELS.get(self.method, self.method)
        return method if self.named_after_method else f"{method} ({self.run})"


@dataclass(frozen=True)
class Result:
    """What one checkpoint scored on one benchmark: a metrics file."""

    path: Path
    run: Run
    seed: int
    benchmark: str
    document: Row

    @property
    def header(self) -> Row:
        """Where the samples come from and how they were drawn and graded."""
        header: Row = self.document["header"]
        return header

    @property
    def settings(self) -> Row:
        """How the scores were counted."""
        settings: Row = self.document["settings"]
        return settings

    @cached_property
    def ks(self) -> list[int]:
        """The k of every pass@k in the file, ascending."""
        return sorted(int(k) for k in self.document["pass"])

    @property
    def table_k(self) -> int:
        """The k of the table: the header's `table_k`, else the largest k in the file."""
        return int(self.header.get("table_k") or self.ks[-1])

    def at_k(self, k: int) -> Mapping[str, float]:
        """pass@k of every problem; k = 1 is its share of right samples, whose mean is avg@k."""
        return values_at_k(self.document, k)


@dataclass(frozen=True)
class Results:
    """All metrics files of a report, checked to be complete and comparable."""

    everything: tuple[Result, ...]

    @cached_property
    def runs(self) -> list[Run]:
        """The runs, model by model as first met, each model's in the paper's order."""
        return in_order(result.run for result in self.everything)

    @cached_property
    def models(self) -> list[str]:
        """The models as first met."""
        return list(dict.fromkeys(run.model for run in self.runs))

    @cached_property
    def benchmarks(self) -> list[str]:
        """The benchmarks in the paper's order, others behind as first met."""
        known = list(BENCHMARK_LABELS)
        met = list(dict.fromkeys(result.benchmark for result in self.everything))
        return sorted(met, key=lambda name: known.index(name) if name in known else len(known))

    @property
    def scale(self) -> str:
        """How big the experiment is: one word for the whole report."""
        return str(self.everything[0].header["scale"])

    @property
    def at(self) -> str | None:
        """What the checkpoints have spent equally much of (`tokens`, ...); None at the end of their trainings."""
        return next((result.header["at"] for result in self.everything if result.header.get("at")), None)

    @property
    def bootstrap(self) -> tuple[int, int]:
        """Draws and seed of every interval over problems."""
        settings = self.everything[0].settings
        return int(settings["bootstrap"]), int(settings["seed"])

    def of(self, run: Run, benchmark: str) -> list[Result]:
        """One result per seed."""
        return self._by_cell[run, benchmark]

    def seeds(self, run: Run) -> list[int]:
        """The training seeds of a run, ascending."""
        return sorted({result.seed for result in self.everything if result.run == run})

    def of_model(self, model: str) -> list[Run]:
        """The runs of one model."""
        return [run for run in self.runs if run.model == model]

    def table_k(self, benchmark: str) -> int:
        """The k of pass@k on a benchmark."""
        return self.of(self.runs[0], benchmark)[0].table_k

    @cached_property
    def _by_cell(self) -> dict[tuple[Run, str], list[Result]]:
        cells: dict[tuple[Run, str], list[Result]] = {}
        for result in sorted(self.everything, key=lambda result: result.seed):
            cells.setdefault((result.run, result.benchmark), []).append(result)
        return cells


def load_results(paths: Sequence[Path]) -> Results:
    """Read metrics files and refuse any that cannot stand in one table.

    Raises:
        InputError: no files; a file that is not whole; two files for one checkpoint and benchmark; two checkpoints of
            one run and seed; two scales; a run without a benchmark; or runs that differ in problems, keys, n, k,
            decoding, checker or counting.
    """
    if not paths:
        raise InputError("no metrics files given: a report needs at least one")
    results = Results(tuple(_load_result(Path(path)) for path in paths))
    first_of: dict[tuple[Run, int, str], Result] = {}
    for result in results.everything:
        twin = first_of.setdefault((result.run, result.seed, result.benchmark), result)
        if twin is not result:
            raise InputError(f"{result.path}: same checkpoint and benchmark as {twin.path}; give one of them")
        _check_same(results.everything[0], result, ("scale",), RESAMPLED)
    checkpoints: dict[tuple[Run, int], Result] = {}
    for result in results.everything:
        _check_same(checkpoints.setdefault((result.run, result.seed), result), result, ("checkpoint",))
    trained = [result for result in results.everything if result.run.method != "base"]
    for result in trained:
        _check_same(trained[0], result, ("at",))
    for run in results.runs:
        for seed in results.seeds(run):
            for benchmark in results.benchmarks:
                if (run, seed, benchmark) not in first_of:
                    raise InputError(f"{run} seed {seed}: no metrics for benchmark {benchmark!r}; evaluate it")
    for benchmark in results.benchmarks:
        _check_comparable([result for run in results.runs for result in results.of(run, benchmark)])
    return results


def in_order(runs: Iterable[Run]) -> list[Run]:
    """The distinct runs: models as first met, then methods in the paper's order, then variants."""
    met = list(dict.fromkeys(runs))
    models = list(dict.fromkeys(run.model for run in met))
    methods = [*METHOD_LABELS, *(run.method for run in met if run.method not in METHOD_LABELS)]
    return sorted(
        met,
        key=lambda run: (
            models.index(run.model),
            not run.named_after_method,
            methods.index(run.method),
            run.run,
        ),
    )


def benchmark_label(benchmark: str) -> str:
    """The paper's name of a benchmark where it has one."""
    return BENCHMARK_LABELS.get(benchmark.lower(), benchmark)


def _load_result(path: Path) -> Result:
    document = read_metrics(path)
    header = document["header"]
    run = Run(header["model"], header["method"], header["run"])
    return Result(path, run, header["seed"], header["benchmark"], document)


def _check_comparable(results: Sequence[Result]) -> None:
    first = results[0]
    of_model: dict[str, Result] = {}
    for result in results:
        _check_same(first, result, SHARED_SETTINGS, COUNTED)
        # base and instruct models may be asked in their own ways, the runs of one model may not
        _check_same(of_model.setdefault(result.run.model, result), result, ("prompt",))
        if result.at_k(1).keys() != first.at_k(1).keys():
            raise InputError(f"{result.path}: other problems than {first.path} on {first.benchmark!r}")
        for k in sorted({*first.ks, first.table_k} - set(result.ks)):
            known = ", ".join(map(str, result.ks))
            raise InputError(f"{result.path}: no pass@{k} (it has k = {known}); compute the metrics with it")
        if result.table_k != first.table_k:
            raise InputError(f"{result.path}: k = {result.table_k} for the table, but {first.path} has {first.table_k}")


def _check_same(first: Result, other: Result, keys: Iterable[str], counted: Iterable[str] = ()) -> None:
    """Refuse results that differ under one of these keys of the header, or of the settings they were counted with."""
    ours, theirs = (
        {
            **{key: result.header.get(key) for key in keys},
            **{f"metrics setting {key!r}": result.settings[key] for key in counted},
        }
        for result in (first, other)
    )
    for key, value in theirs.items():
        if ours[key] != value:
            raise InputError(
                f"{other.path}: {key} is {value!r}, but {first.path} has {ours[key]!r}; results in one report must "
                "share it"
            )
