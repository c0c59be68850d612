"""Contradictions in a configuration whose every key is right by itself; each is refused before anything runs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from datpo.config_studies import mistakes_in_studies
from datpo.core.errors import InputError

DURATIONS = ("steps", "tokens", "updates", "passes")
# A source of problems -> the keys that have a meaning beside it.
READ = {"count", "drop", "fields", "answer_after", "of_levels", "take", "fingerprint"}
SOURCES = {
    "levels": {"count"},
    "path": {*READ, "sha256"},
    "url": {*READ, "sha256"},
    "hub": {*READ, "revision", "split", "subset", "data_files"},
    "from_train": set(),
}
# The same of a model.
MODEL_SOURCES = {"hub": {"revision"}, "path": set(), "gguf": {"package", "sha256"}}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def check(config: Mapping[str, Any], methods: Sequence[str]) -> None:
    """Refuse settings that contradict each other.

    Raises:
        InputError: one line for each contradiction, with its key.
    """
    checks: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: _names(config, methods),
        lambda: _durations(config),
        lambda: _models(config),
        lambda: _prompts(config),
        lambda: _sources(config),
        lambda: _out_of_domain(config),
        lambda: _sample_counts(config),
        lambda: mistakes_in_bands(config["difficulty"]),
        lambda: mistakes_in_studies(config),
    )
    lines = [f"config: {line}" for each in checks for line in each()]
    if lines:
        raise InputError("\n".join(lines))


def check_removals(below: Mapping[str, Any], above: Mapping[str, Any]) -> None:
    """Refuse an overlay that takes away, with null, a run, model or benchmark that is not there.

    Raises:
        InputError: the name is most likely mistyped; the names there are get listed.
    """
    lines = []
    for kind in ("runs", "models", "benchmarks", "out_of_domain", "studies", "explorations"):
        old, new = _names_of(below, kind), _names_of(above, kind)
        for name, value in new.items():
            if value in (None, "null") and name not in old:
                near = difflib.get_close_matches(str(name), list(map(str, old)), n=1)
                guess = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(map(str, old))}"
                lines.append(f"config: {kind}.{name}: null takes away nothing, there is no such name; {guess}")
    if lines:
        raise InputError("\n".join(lines))


def _names_of(layer: Mapping[str, Any], kind: str) -> Mapping[Any, Any]:
    """The entries of one kind; none where something else stands in their place, which the schema refuses later."""
    entries = layer.get(kind)
    return entries if isinstance(entries, Mapping) else {}


def _names(config: Mapping[str, Any], methods: Sequence[str]) -> Iterator[str]:
    if not config["runs"]:
        yield "runs: nothing is listed, so there is nothing to train"
    for name in ("base", "train"):
        if name in config["trainings"] or name in config["benchmarks"]:
            yield f"{name!r} names the base model or the training set, not a run or a benchmark"
    for name, run in config["trainings"].items():
        if name in methods and name != run["method"]:
            yield f"runs.{name}: is named like a method but trains by {run['method']!r}; give it another name"


def _durations(config: Mapping[str, Any]) -> Iterator[str]:
    for name, run in config["trainings"].items():
        if not run["train"]["duration"]:
            yield f"run {name!r}: train.duration needs at least one of {', '.join(DURATIONS)}"


def _models(config: Mapping[str, Any]) -> Iterator[str]:
    for name, model in config["models"].items():
        if len({"pretrain", "source"} & set(model)) != 1:
            yield f"models.{name} needs exactly one of `pretrain` and `source`"
        if "source" in model:
            yield from _model_source(f"models.{name}.source", model["source"])
        if "pretrain" in model:
            sizes = model["pretrain"]["model"]
            width, heads, groups = (sizes[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads"))
            at = f"models.{name}.pretrain.model"
            if width % heads or width // heads % 2:
                yield f"{at}: hidden_size {width} must be an even multiple of num_attention_heads {heads}"
            if heads % groups:
                yield f"{at}: num_attention_heads {heads} must be a multiple of num_key_value_heads {groups}"


def _model_source(at: str, source: Mapping[str, Any]) -> Iterator[str]:
    given = {key for key, value in source.items() if value}
    chosen = sorted(given & set(MODEL_SOURCES))
    if len(chosen) != 1:
        found = " and ".join(chosen) or "none"
        yield f"{at} needs exactly one of `hub` with `revision` (a commit), `path`, and `gguf`, not {found}"
        return
    (kind,) = chosen
    if ignored := sorted(given - MODEL_SOURCES[kind] - {kind}):
        yield f"{at}: {', '.join(ignored)} has no meaning beside `{kind}`"
    if kind == "hub" and "revision" not in given:
        yield f"{at} needs `revision` (a commit) beside `hub`"
    elif kind == "hub":
        yield from _moving(at, source["revision"])
    if "package" in given and "sha256" not in given:
        yield f"{at} needs `sha256`, that of the file's bytes, beside `package`"


def _sources(config: Mapping[str, Any]) -> Iterator[str]:
    """Each problem set comes from one place, and says all that is needed and nothing that would be ignored."""
    for at, entry in problem_entries(config):
        chosen = [kind for kind in SOURCES if kind in entry]
        possible = [kind for kind in SOURCES if kind != "from_train" or at == "data.validation"]
        if len(chosen) != 1 or chosen[0] not in possible:
            yield f"{at}: needs exactly one of {', '.join(possible)}, not {' and '.join(chosen) or 'none'}"
            continue
        (kind,) = chosen
        if ignored := sorted(set(entry) - SOURCES[kind] - {kind}):
            yield f"{at}: {', '.join(ignored)} has no meaning beside `{kind}`"
        if kind == "levels" and config["domain"] != "moves":
            yield f"{at}: `levels` makes move puzzles, but the domain is {config['domain']!r}"
        if kind == "levels" and "count" not in entry:
            yield f"{at}: `levels` needs `count`, the number of puzzles to make"
        if kind == "hub" and "revision" not in entry:
            yield f"{at}: `hub` needs `revision`, a commit, so that the same problems come every time"
        elif kind == "hub":
            yield from _moving(at, entry["revision"])
        if kind == "url" and "sha256" not in entry:
            yield f"{at}: `url` needs `sha256`, that of the file's bytes, so that the same problems come every time"


def _out_of_domain(config: Mapping[str, Any]) -> Iterator[str]:
    """Names are those of folders and files, so they are shared with the benchmarks; a source is a commit or a file."""
    for name, entry in config["out_of_domain"].items():
        source = entry["problems"]
        at = f"out_of_domain.{name}"
        if name in config["benchmarks"] or name == "train":
            yield f"{at}: {name!r} is a benchmark or the training set; give it another name"
        if ("hub" in source) == ("path" in source):
            yield f"{at}.problems: needs either `hub` and `revision` (a commit), or `path`"
        elif "path" in source and (ignored := sorted(set(source) - {"path", "drop"})):
            yield f"{at}.problems: {', '.join(ignored)} has no meaning beside `path`"
        elif "hub" in source and "revision" not in source:
            yield f"{at}.problems: `hub` needs `revision`, a commit, so that the same questions come every time"
        elif "hub" in source:
            yield from _moving(f"{at}.problems", source["revision"])
        if entry["stratified"] and entry["count"] and entry["stratified"] >= entry["count"]:
            yield f"{at}: `stratified: {entry['stratified']}` of {entry['count']} questions is no subset; leave it out"


def _moving(at: str, revision: str) -> Iterator[str]:
    """A line if a revision is a branch or a tag: these are moved by their owners, and another training starts."""
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        yield f"{at}.revision: must be a commit, 40 hexadecimal digits; {revision!r} may be another one tomorrow"


def _prompts(config: Mapping[str, Any]) -> Iterator[str]:
    """A prompt's own words hold no box, which a model would repeat as its answer, and no control characters."""
    own = {f"models.{name}.prompt": model["prompt"] for name, model in config["models"].items()}
    told: set[str] = set()
    for at, prompt in {"prompt": config["prompt"], **own}.items():
        for key in ("format", "system", "stop"):
            text = "\n".join([prompt[key]] if isinstance(prompt[key], str) else prompt[key] or ())
            if text in told:  # a model has the experiment's prompt where it has no other
                continue
            told.add(text)
            if found := _CONTROL.search(text):
                yield (
                    f"{at}.{key}: holds the control character {found[0]!r}, as which YAML reads \\b or \\f between "
                    "double quotes; write it between single quotes"
                )
            answer = None if key == "stop" else _boxed(text.replace("{problem}", "1"))
            if answer is not None:
                yield (
                    f"{at}.{key}: holds a box, which the checker would read as the answer {answer!r} in a response "
                    r"that repeats it; leave the box empty: \boxed{}"
                )


def _boxed(text: str) -> str | None:
    if "box" not in text:
        return None
    from datpo.evaluate.verify.boxed import find_answer  # takes a while to load, and few prompts speak of boxes

    return find_answer(f"{text}\n")  # nothing is cut off at its end


def problem_entries(config: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each problem set stands in the configuration, and its entry."""
    yield "data.train", config["data"]["train"]
    yield "data.validation", config["data"]["validation"]
    for name, benchmark in config["benchmarks"].items():
        yield f"benchmarks.{name}.problems", benchmark["problems"]


def _sample_counts(config: Mapping[str, Any]) -> Iterator[str]:
    for name, benchmark in config["benchmarks"].items():
        if max(benchmark["k"]) > benchmark["samples"]:
            yield (
                f"benchmarks.{name}: k = {max(benchmark['k'])} is above its {benchmark['samples']} samples "
                "per problem, so pass@k cannot be estimated; raise `samples` or lower `k`"
            )
        runs, whose = benchmark["runs"], "its runs"
        if runs is None:
            runs, whose = config["evaluation"]["runs"], "evaluation.runs"
        if benchmark["samples"] % runs:
            yield (
                f"benchmarks.{name}: its {benchmark['samples']} samples per problem cannot be split evenly into "
                f"{whose} = {runs}"
            )


def mistakes_in_bands(difficulty: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the bands of problems by how often they are solved; never or always solved is no band."""
    most, bands = difficulty["samples"] - 1, difficulty["bands"]
    for name, (low, high) in bands.items():
        if not 1 <= low <= high <= most:
            yield (
                f"difficulty.bands.{name}: [{low}, {high}] must be [fewest, most] right samples within 1 to {most}, "
                f"for difficulty.samples is {most + 1}"
            )
    for (first, one), (second, two) in pairwise(sorted(bands.items(), key=lambda item: list(item[1]))):
        if two[0] <= one[1]:
            yield f"difficulty.bands: {first} {one} and {second} {two} overlap"
