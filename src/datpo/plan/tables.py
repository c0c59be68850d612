"""A plan as tables: in all, by table and figure, training by training, benchmark by benchmark, and its memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from datpo.plan.estimates import CPU, Estimate, Plan, total
from datpo.plan.memory import Memory
from datpo.plan.needs import TRAIN, short
from datpo.plan.ranges import Range
from datpo.report.sheet import Part

NAMES = {
    "pretrain": "pre-training",
    "train": "trainings",
    "sample": "samplings of a benchmark",
    "explore": "explorations",
}
GB, MILLION, EXA = 1e9, 1e6, 1e18
TOKENS = ("new tokens, millions", "trained tokens, millions", "10^18 operations")
Header = Sequence[tuple[str, str]]


def parts_of(plan: Plan) -> list[Part]:
    """The tables of a plan."""
    trainings = [each for each in plan.estimates if each.job.kind in ("train", "pretrain")]
    return [
        Part("", _columns("jobs", "number", "done", *TOKENS, "hours"), list(_kinds(plan)), left=1),
        Part(
            "By table and figure",
            _columns("shows", "trainings", "other jobs", "hours", "hours of jobs that nothing else needs"),
            list(_targets(plan)),
            left=1,
        ),
        Part(
            "Trainings",
            _columns(
                *("model", "run", "seed", "needed by", "questions", "updates", *TOKENS, "peak GB"),
                *("hours measured", "hours by the paper", "from"),
            ),
            [_training(each) for each in trainings],
            left=4,
        ),
        Part(
            "Samples",
            _columns(
                "model", "of", "needed by", "checkpoints", "new tokens of each, millions", "hours of each", "hours"
            ),
            list(_samples(plan)),
            left=3,
        ),
        Part(
            f"Memory: GB by part, on a device of {plan.memory / GB:g} GB ({plan.device})",
            _columns(
                *("model", "jobs", "masters", "moments", "embedder", "weights", "cache", "kept", "drawing"),
                *("gradients", "copies", "activations", "logits", "peak", "fits"),
                *("generation_batch that fits", "token_budget that fits", "vLLM's keys and values"),
            ),
            list(_memory(plan)),
            left=2,
        ),
    ]


def _columns(*names: str) -> Header:
    return [("", name) for name in names]


def _kinds(plan: Plan) -> Iterator[list[str | None]]:
    for kind, name in NAMES.items():
        mine = [each for each in plan.estimates if each.job.kind == kind]
        if mine:
            yield [name, *_sums(mine)]
    yield ["all", *_sums(plan.estimates)]


def _sums(estimates: Sequence[Estimate]) -> list[str | None]:
    return [
        f"{len(estimates):,}",
        f"{sum(each.done for each in estimates):,}",
        shown(sum(each.work.sampled.mid for each in estimates) / MILLION),
        shown(sum(each.work.trained for each in estimates) / MILLION),
        shown(sum(each.work.all_operations for each in estimates) / EXA),
        hours_text(estimates),
    ]


def _targets(plan: Plan) -> Iterator[list[str | None]]:
    """Tables and figures that need the same jobs stand together."""
    groups: dict[frozenset[Estimate], list[str]] = {}
    for target in plan.targets:
        groups.setdefault(frozenset(plan.of(target)), []).append(target)
    for jobs, targets in groups.items():
        mine = [each for each in plan.estimates if each in jobs]
        alone = [each for each in mine if set(each.needed_by) <= set(targets)]
        trained = sum(each.job.kind == "train" for each in mine)
        yield [
            short(targets),
            f"{trained:,}",
            f"{len(mine) - trained:,}",
            hours_text(mine),
            hours_text(alone) if alone else None,
        ]


def _training(each: Estimate) -> list[str | None]:
    job, work = each.job, each.work
    return [
        job.model,
        "pre-training" if job.kind == "pretrain" else job.run,
        str(job.seed),
        short(each.needed_by),
        shown(work.questions),
        shown(work.updates),
        shown(work.sampled.mid / MILLION),
        shown(work.trained / MILLION),
        shown(work.all_operations / EXA),
        shown(work.memory.peak / GB),
        None if each.measured is None else shown(each.measured) + ("" if each.done else " (like others)"),
        None if each.paper is None else _range_text(each.paper),
        each.source or None,
    ]


def _samples(plan: Plan) -> Iterator[list[str | None]]:
    groups: dict[tuple[str, str], list[Estimate]] = {}
    for each in plan.estimates:
        if each.job.subject:
            groups.setdefault((each.job.model, each.job.subject), []).append(each)
    for (model, subject), mine in groups.items():
        targets = [target for each in mine for target in each.needed_by]
        known = [each for each in mine if each.hours is not None]
        mean = total(known) * (1 / len(known)) if known else None
        yield [
            model,
            "the training problems, for their difficulty" if subject == TRAIN else subject,
            short(targets),
            f"{len(mine):,}",
            shown(mine[0].work.sampled.mid / MILLION),
            None if mean is None else _range_text(mean),
            hours_text(mine),
        ]


def _memory(plan: Plan) -> Iterator[list[str | None]]:
    """Jobs of one kind and model that need the same stand together."""
    groups: dict[tuple[str, str, Memory], list[str]] = {}
    for each in plan.estimates:
        job = each.job
        name = (
            job.run
            if job.kind == "train"
            else {"pretrain": "pre-training", "sample": "samples"}.get(job.kind, job.subject)
        )
        groups.setdefault((job.model, job.kind, each.work.memory), []).append(name)
    for (model, _, memory), names in groups.items():
        room = memory.room(plan.memory)
        pages = memory.pages(plan.memory) if plan.device != CPU else None
        yield [
            model,
            ", ".join(dict.fromkeys(names)),
            *map(_gigabytes, (memory.masters, memory.moments, memory.embedder)),
            *map(_gigabytes, (memory.weights, memory.cache, memory.kept, memory.sampling)),
            *map(_gigabytes, (memory.gradients, memory.copies, memory.activations, memory.logits)),
            shown(memory.peak / GB),
            "yes" if memory.peak <= plan.memory else "NO",
            *(None if number is None else f"{number:,}" for number in room),
            None if pages is None else shown(pages / GB),
        ]


def _gigabytes(part: float) -> str | None:
    return shown(part / GB) if part else None


def hours_text(estimates: Iterable[Estimate]) -> str | None:
    """The hours of jobs together; of how many nothing is known."""
    mine = list(estimates)
    unknown = sum(each.hours is None for each in mine)
    if unknown == len(mine):
        return None
    return _range_text(total(mine)) + (f" and {unknown:,} unknown" if unknown else "")


def _range_text(hours: Range) -> str:
    if hours.low == hours.high:
        return shown(hours.mid)
    return f"{shown(hours.mid)} ({shown(hours.low)} to {shown(hours.high)})"


def shown(number: float) -> str:
    """A number to two or three digits."""
    if number == 0:
        return "0"
    if number >= 99.5:
        return f"{number:,.0f}"
    if number >= 9.95:
        return f"{number:.1f}"
    return f"{number:.2f}" if number >= 0.095 else f"{number:.1g}"
