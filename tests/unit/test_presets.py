"""The preset holds the release's quirks; the page on fidelity names options that exist, and real defaults."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from datpo.config import SCHEMA, load_config, merge, read_settings
from datpo.config_schema import known_keys, validate
from datpo.config_studies import rows_of, study_settings
from datpo.core.errors import InputError
from datpo.methods import load, names
from datpo.report.runs import METHOD_LABELS, Run

ROOT = Path(__file__).resolve().parents[2]
PRESETS = sorted(path.stem for path in (ROOT / "config/presets").glob("*.yaml"))
SCALES = ("tiny", "paper")
PAGE = ROOT / "docs/fidelity.md"


@cache
def plain(scale: str = "paper") -> dict[str, Any]:
    """The experiment without a preset."""
    return load_config(ROOT, {"scale": scale})


@cache
def with_preset(name: str, scale: str = "paper") -> dict[str, Any]:
    """The experiment as `--configfile config/presets/NAME.yaml --config scale=SCALE` gives it."""
    return load_config(ROOT, {**read_settings(ROOT / f"config/presets/{name}.yaml"), "scale": scale})


@cache
def usual_numbers(method: str) -> dict[str, Any]:
    """A method's numbers where nothing is said: its file, and the defaults of its `build`."""
    own = {key: p.default for key, p in parameters(method).items() if p.default is not p.empty}
    return {**own, **read_settings(ROOT / f"config/methods/{method}.yaml")}


def parameters(method: str) -> dict[str, inspect.Parameter]:
    build = importlib.import_module(f"datpo.methods.{method}").build
    return dict(inspect.signature(build).parameters)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_run_named_like_its_method_is_the_one_without_a_preset(preset: str, scale: str) -> None:
    """So its results serve both."""
    for name, run in with_preset(preset, scale)["runs"].items():
        assert name != run["method"] or run == plain(scale)["runs"][name]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_says_how_it_is_used(preset: str) -> None:
    comment = (ROOT / f"config/presets/{preset}.yaml").read_text(encoding="utf-8").split("\n\n")[0]
    assert f"--configfile config/presets/{preset}.yaml\n" in comment
    assert f"--profile slurm --configfile config/presets/{preset}.yaml --config scale=paper" in comment


# Written by hand. What the studies change: test_paper_config.py.
RELEASE = {
    "grpo_release": {"clip": [0.2, 0.2], "checker": "datpo_release", "end_token": "untrained"},
    "dr_grpo_release": {"truncated": "wrong", "checker": "datpo_release", "end_token": "untrained"},
    "treerl_release": {
        "credit": "released",
        "aggregate": "sequence_mean",
        "truncated": "wrong",
        "checker": "datpo_release",
        "end_token": "untrained",
    },
    "attnrl_release": {"spacing": 512, "checker": "datpo_release", "end_token": "untrained"},
    "datpo_release": {
        "value": "branches_only",
        "compared": "released",
        "graded_text": "branch",
        "checker": "datpo_release",
        "end_token": "untrained",
    },
}


def changes(runs: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each run has otherwise than its method's file and than `train` at the paper's scale.

    What studies ask for on the way, checkpoints, is left out.
    """
    found = {}
    for run, settings in runs.items():
        usual = {**usual_numbers(settings["method"]), **plain()["train"]}
        given = {**settings["numbers"], **settings["train"]}
        changed = {key: value for key, value in given.items() if key not in usual or usual[key] != value}
        found[run] = {key: value for key, value in changed.items() if key != "checkpoints"}
    return found


def test_the_release_changes_what_the_release_changes_and_nothing_else() -> None:
    assert PRESETS == ["release"]
    assert changes(with_preset("release")["runs"]) == RELEASE
    assert with_preset("release")["trainings"].keys() == RELEASE.keys()


@pytest.mark.parametrize("scale", SCALES)
def test_every_training_s_method_can_be_built_and_is_named_after_it(scale: str) -> None:
    for name, run in plain(scale)["trainings"].items():
        load(run["method"], run["numbers"])
        assert name == run["method"] or name.startswith(run["method"] + "_")


def test_the_rows_of_every_table_are_the_paper_s() -> None:
    """Labels as in the published numbers, which stand beside ours."""
    published = read_settings(ROOT / "config/published.yaml")
    for name, study in plain()["studies"].items():
        if name in ("table3", "table4", "table8", "table9", "table12", "table13", "table14"):
            rows = [label or Run("", run, run).label for label, run in rows_of(plain(), name)]
            assert sorted(rows) == sorted(published[name]), name
        if name == "table5":
            told = [f"{subset}, G = {size}" for subset, sizes in published[name].items() for size in sizes]
            assert [label for label, _ in rows_of(plain(), name)] == told
        assert study["models"] is not None, f"{name}: which of the models the paper shows is said"


def test_variants_are_held_against_the_run_they_vary() -> None:
    against = {
        name: study_settings(plain(), name)["against"] for name in plain()["studies"] if name.startswith("table")
    }
    variants = {"table3", "table4", "table12", "table13", "table14"}
    assert {name for name, run in against.items() if run} == variants
    assert {against[name] for name in variants} == {"datpo"}


def test_the_release_grades_in_its_own_way_and_nothing_else_does() -> None:
    assert with_preset("release")["evaluation"]["truncated"] == "graded" != plain()["evaluation"]["truncated"]
    assert with_preset("release")["evaluation"]["checker"] == "datpo_release" != plain()["evaluation"]["checker"]


@pytest.mark.parametrize("scale", SCALES)
def test_groups_of_every_size_make_256_responses_and_one_update(scale: str) -> None:
    runs = {name: run for name, run in plain(scale)["trainings"].items() if run["train"]["subset"]}
    assert len(runs) == 9
    for run in runs.values():
        train = run["train"]
        assert run["numbers"]["roots"] * train["prompts_per_step"] == train["minibatch_size"] == 256
        assert load("grpo", run["numbers"]).clip_range == (1.0, float("inf"))


@pytest.mark.parametrize("scale", SCALES)
def test_what_is_explored_is_the_paper_s_shape(scale: str) -> None:
    explored = plain(scale)["explorations"]
    forks = explored["forks"]["structures"].values()
    assert {(run["numbers"][key]) for run in forks for key in ("max_forks", "max_siblings")} == {4}
    assert {run["numbers"]["roots"] for run in forks} == {1}
    assert explored["forks"]["repeats"] == 5
    for name, structure in explored["tokens"]["structures"].items():
        numbers = structure["numbers"]
        assert numbers["roots"] == int(name.rsplit("-", 1)[1])
        assert structure["method"] == "grpo" or (numbers["max_forks"], numbers["max_siblings"]) == (2, 2)


class Option(NamedTuple):
    """A `key: value` in the page's column "ours"."""

    method: str | None
    question: str
    key: str
    value: Any
    default: bool

    def __str__(self) -> str:
        return f"{self.method or 'all'}, {self.question}: {self.key}"


METHOD_OF = {"GRPO": "grpo", "Dr.GRPO": "dr_grpo", "TreeRL": "treerl", "AttnRL": "attnrl", "DATPO": "datpo"}


def rows(page: str) -> Iterator[tuple[str | None, list[str]]]:
    """The method of the section that each table row stands in, and the row's cells."""
    method = None
    for line in page.splitlines():
        if line.startswith("## "):
            method = METHOD_OF.get(line.removeprefix("## ").split(":")[0])
        if line.startswith("| ") and not line.startswith("| question |"):
            yield method, [cell.strip() for cell in line.strip("|").split("|")]


COMPUTED = ("out_of_domain", "trainings")  # what loading adds to, or makes of, what is written


def options(page: str) -> list[Option]:
    return [
        Option(method, cells[0], key, yaml.safe_load(value), bool(bold))
        for method, cells in rows(page)
        for bold, key, value in re.findall(r"(\*\*)?`([\w.]+): ([^`]+)`", cells[3])
    ]


def default_of(option: Option) -> Any:
    """What the option is where nothing is said.

    Raises:
        InputError: there is no such option, or it cannot have such a value.
    """
    method, key, value = option.method, option.key, option.value
    if method and key in parameters(method):
        load(method, {**usual_numbers(method), key: value})
        return usual_numbers(method)[key]
    path = key.split(".") if "." in key or key == "domain" else ["train", key]
    if ".".join(path) not in dict(known_keys(schema(), schema()["$defs"])):
        raise InputError(f"{option}: there is no such option")
    default: Any = plain()
    for part in path:
        default = default[part]
    for part in reversed(path):
        value = {part: value}
    validate({key: part for key, part in merge(plain(), value).items() if key not in COMPUTED}, schema())
    return default


@cache
def schema() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / SCHEMA).read_text(encoding="utf-8"))
    return found


def test_every_row_of_the_page_has_its_five_cells() -> None:
    found = list(rows(PAGE.read_text(encoding="utf-8")))
    assert len(found) > 80
    assert [cells for _, cells in found if len(cells) != 5] == []
    spans = [span for _, cells in found for span in re.findall(r"`([^`]+)`", cells[3])]
    assert [span for span in spans if ":" in span and not re.fullmatch(r"[\w.]+:( [^`]+)?", span)] == []


@pytest.mark.parametrize("option", options(PAGE.read_text(encoding="utf-8")), ids=str)
def test_an_option_on_the_page_exists_and_a_bold_one_is_the_default(option: Option) -> None:
    assert not option.default or default_of(option) == option.value
    default_of(option)


# The methods of the paper; a baseline that a user adds has no place on the page.
PAPERS = [name for name in names() if name in METHOD_LABELS]


def test_the_page_has_the_default_of_every_option() -> None:
    told = {(option.method, option.key) for option in options(PAGE.read_text(encoding="utf-8")) if option.default}
    lacking = [(method, key) for method in PAPERS for key in parameters(method) if (method, key) not in told]
    assert lacking == []
    keys = {key for _, key in told}
    assert [key for key in schema()["$defs"]["train"]["properties"] if key not in keys] == []


@pytest.mark.parametrize(
    ("section", "ours"),
    [
        ("DATPO: search", "`fork_ruel: atb`"),
        ("DATPO: search", "`fork_rule: sent-entropie`"),
        ("DATPO: credit", "`root_value: bases`"),
        ("GRPO", "`max_forks: 3`"),
        ("Update", "`epoch: 2`"),
        ("Update", "`minibatch: tree`"),
        ("Update", "`max_forks: 3`"),
        ("Evaluation", "`evaluation.truncate: wrong`"),
        ("Evaluation", "`evaluation.truncated: right`"),
    ],
)
def test_a_mistyped_option_does_not_pass(section: str, ours: str) -> None:
    (option,) = options(f"## {section}\n\n| a question | – | – | **{ours}** | |\n")
    with pytest.raises(InputError):
        default_of(option)


@pytest.mark.parametrize("page", ["fidelity.md", "method.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", text) if not target.startswith("http")]
    assert targets
    for target in targets:
        file, _, heading = target.partition("#")
        linked = ROOT / "docs" / (file or page)
        assert linked.exists(), target
        titles = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
        anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
        assert not heading or heading in anchors, target
