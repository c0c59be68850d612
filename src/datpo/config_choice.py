"""The configuration of the multiple-choice benchmarks outside the training domain: what each of their jobs is given."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datpo.core.errors import InputError
from datpo.data.files import file_hash

Settings = dict[str, Any]

TASKS = Path("workflow/out_of_domain")
SHARED = "_choice_yaml"  # what all task files include
# Where a base model that goes on to a question of its own is cut; the task files say the same.
NEXT_QUESTION = "\nQuestion:"


def add_fingerprints(config: Settings, root: Path) -> None:
    """Note at each benchmark what tells its task file, and a local file of questions, from changed ones.

    Raises:
        InputError: there is no such file.
    """
    for name, entry in config["out_of_domain"].items():
        files = [root / TASKS / each for each in (f"{entry['task']}.yaml", SHARED)]
        entry["task_sha256"] = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
        path = entry["problems"].get("path")
        if path is not None:
            # Beside the working directory, the project: it ships with some questions.
            path = entry["problems"]["path"] = path if Path(path).exists() else str(root / path)
            try:
                entry["problems"]["sha256"] = file_hash(path)
            except InputError as error:
                raise InputError(f"config: out_of_domain.{name}.problems.path: {error}") from None


def question_settings(config: Settings, name: str) -> Settings:
    """What the questions of one benchmark are made from."""
    entry = config["out_of_domain"][name]
    return {**{key: entry[key] for key in ("problems", "count", "stratified")}, "seed": config["data"]["seed"]}


def choice_prompts(config: Settings, prompt: Mapping[str, Any], name: str) -> Settings:
    """What a model is asked on one benchmark, how often, and where its responses end.

    The task file words the whole prompt. The model's own `prompt` says whether it goes through a chat template; how
    long a training problem may be is no matter here.
    """
    entry = config["out_of_domain"][name]
    whole = {"format": "{problem}", "examples": [], "max_tokens": None, "stop": [*prompt["stop"], NEXT_QUESTION]}
    return {
        "domain": "choice",
        "prompt": {**prompt, **whole},
        "n": entry["samples"],
        "data": {**question_settings(config, name), **{key: entry[key] for key in ("task", "task_sha256")}},
    }


def choice_settings(config: Settings, name: str) -> Settings:
    """How the samples of one benchmark are graded and counted; they are one evaluation run."""
    entry, evaluation = config["out_of_domain"][name], config["evaluation"]
    powers = [2**power for power in range(entry["samples"].bit_length())]
    return {
        "k": sorted({*powers, entry["samples"]}),
        "missing": "wrong",
        "runs": 1,
        **{key: evaluation[key] for key in ("bootstrap", "seed", "truncated")},
    }
