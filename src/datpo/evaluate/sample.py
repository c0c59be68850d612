"""Sampling a checkpoint on a benchmark, resumably: raw samples first, every metric comes from them later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from datpo.config import read_settings
from datpo.core.engine import Engine, Request
from datpo.core.errors import InputError
from datpo.core.files import write_jsonl
from datpo.core.problem import Problem, load_problems, questions_hash
from datpo.core.seeds import seed
from datpo.core.spent import drop_spent
from datpo.engines.build import engine_versions, sampling_engine
from datpo.evaluate.samples import check_header, finished_samples
from datpo.learn.device import usable
from datpo.learn.policy import Policy, checkpoint_hash, load_policy
from datpo.learn.prompts import ended, prompts_of
from datpo.progress import ProgressLines

Row = dict[str, Any]

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def sample_file(config: Path, problems: Path, model: Path, work: Path, out: Path) -> None:
    """Draw `n` responses per problem from the checkpoint `model` and write the samples file `out`.

    Finished problems are kept in `work` as they come, so an interrupted job goes on where it stopped. The draws are
    seeded by (seed, benchmark, problem id, sample), whatever the order or the batch.
    """
    settings = read_settings(config)
    asked = load_problems(problems)
    check_decoding(settings)
    header = make_header(settings, asked, model)
    check_header(str(config), header, "samples")  # what no reader would take is not drawn
    partial = work / f"{header['benchmark']}-{_fingerprint(header)}.jsonl"
    partial.parent.mkdir(parents=True, exist_ok=True)
    rows = finished_samples(partial.read_bytes(), header) if partial.exists() else {}
    write_jsonl(partial, [row for mine in rows.values() for row in mine])
    todo = [problem for problem in asked if problem.id not in rows]
    if todo:
        policy = load_policy(model, PRECISIONS[settings["precision"]])
        policy = policy.ending_at(settings["prompt"].get("stop_tokens") or [])
        if settings["engine"] == "hf":  # another engine has the device to itself
            policy.model.to(usable(Accelerator().device))
        # a prompt that is too long is found now, not after hours of others
        prompts_of(todo, settings["prompt"], policy.tokenizer, policy.context_window)
        engine = sampling_engine(policy, settings)
        label = f"sample {header['model']} {header['run']} seed {header['seed']} on {header['benchmark']}"
        bar = ProgressLines(label, len(asked), "problem", done=len(asked) - len(todo))
        with open(partial, "a", encoding="utf-8") as handle:
            for chunk in _chunks(todo, max(1, engine.at_once // settings["n"])):
                for problem_rows in sample_problems(engine, policy, chunk, settings):
                    rows[problem_rows[0]["problem"]] = problem_rows
                    handle.writelines(json.dumps(row) + "\n" for row in problem_rows)
                handle.flush()
                bar.advance(len(chunk))
    write_jsonl(out, [header, *(row for problem in asked for row in rows[problem.id])])
    drop_spent([partial], out)


def sample_problems(engine: Engine, policy: Policy, problems: Sequence[Problem], settings: Row) -> list[list[Row]]:
    """The rows of each problem's `n` samples."""
    requests = []
    prompts = prompts_of(problems, settings["prompt"], policy.tokenizer, policy.context_window)
    for problem, prompt in zip(problems, prompts, strict=True):
        room = policy.context_window - len(prompt)
        for i in range(settings["n"]):
            draw = seed(settings["seed"], settings["benchmark"], problem.id, i)
            requests.append(Request(prompt, draw, min(settings["max_new_tokens"], room)))
    continuations = iter(zip(requests, engine.sample(requests), strict=True))
    stops = settings["prompt"].get("stop") or []
    samples = []
    for problem in problems:
        rows = []
        for i in range(settings["n"]):
            request, continuation = next(continuations)
            text, finish = ended(policy.decode(continuation.tokens), continuation.finish, stops)
            rows.append(
                {
                    "problem": problem.id,
                    "sample": i,
                    "seed": request.seed,
                    "text": text,
                    "tokens": len(continuation.tokens),
                    "finish": finish,
                }
            )
        samples.append(rows)
    return samples


def check_decoding(settings: Row) -> None:
    """Refuse decoding settings under which n samples are one sample.

    Raises:
        InputError: the temperature is not above 0.
    """
    if settings["temperature"] <= 0:
        raise InputError(
            f"temperature {settings['temperature']}: greedy samples are all the same, and {settings['n']} of them "
            "would only look like more; ask for a temperature above 0"
        )


def make_header(settings: Row, problems: Sequence[Problem], model: Path) -> Row:
    """How the samples were made: everything a reader of a score needs to make them again."""
    identity = settings["identity"]
    return {
        "kind": "samples",
        "version": 1,
        **identity,
        "benchmark": settings["benchmark"],
        "domain": settings["domain"],
        "n": settings["n"],
        "problems": len(problems),
        "questions": questions_hash(problems),
        "temperature": settings["temperature"],
        "max_new_tokens": settings["max_new_tokens"],
        "prompt": settings["prompt"],
        "sampling_seed": settings["seed"],
        "engine": settings["engine"],
        "precision": settings["precision"],
        "checkpoint": checkpoint_hash(model),
        "versions": engine_versions(settings["engine"]),
        "threads": torch.get_num_threads(),
    }


def _fingerprint(header: Row) -> str:
    text = json.dumps({key: value for key, value in header.items() if key != "threads"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _chunks(problems: Sequence[Problem], size: int) -> Iterator[Sequence[Problem]]:
    for start in range(0, len(problems), size):
        yield problems[start : start + size]
