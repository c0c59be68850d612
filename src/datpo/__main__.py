"""`python -m datpo VERB`: one verb per rule of the workflow, one option per file; some verbs are for looking.

A verb that returns rows has them printed to standard output, one JSON object a line.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from datpo.core.errors import InputError
from datpo.core.files import Row
from datpo.core.spent import drop_used

# Modules are imported only when their verb is called: most verbs need no torch.
VERBS = {
    "config": "datpo.config:write_settings",
    "plan": "datpo.plan.verb:plan",
    "data": "datpo.data.prepare:prepare_data",
    "fetch-model": "datpo.data.fetch:fetch_model",
    "unpack-model": "datpo.learn.gguf:unpack_model",
    "fetch-embedder": "datpo.data.fetch:fetch_embedder",
    "pretrain": "datpo.learn.pretrain:pretrain",
    "train": "datpo.learn.trainer:train",
    "sample": "datpo.evaluate.sample:sample_file",
    "explore": "datpo.evaluate.explore:explore",
    "score": "datpo.evaluate.score:score_file",
    "metrics": "datpo.evaluate.metrics:metrics_file",
    "out-of-domain-questions": "datpo.data.choices:fetch_questions",
    "out-of-domain-prompts": "datpo.evaluate.out_of_domain:write_prompts",
    "out-of-domain": "datpo.evaluate.out_of_domain:grade_choices",
    "difficulty": "datpo.evaluate.difficulty:split_by_difficulty",
    "table2": "datpo.report.tables:table2",
    "table": "datpo.report.studies.table:study_table",
    "budgets": "datpo.report.budgets:budget_table",
    "card": "datpo.report.card:run_card",
    "checkers": "datpo.report.checkers:compare_checkers",
    "figure-passk": "datpo.report.figures:pass_at_k_figure",
    "figure-curves": "datpo.report.figures:learning_curves",
    "figure-gained": "datpo.report.coverage_figures:gained_figure",
    "figure1": "datpo.report.difficulty_figures:figure1",
    "figure4": "datpo.report.curve_figures:figure4",
    "figure5": "datpo.report.difficulty_figures:figure5",
    "figure6": "datpo.report.coverage_figures:figure6",
    "figure7": "datpo.report.difficulty_figures:figure7",
    "figure10": "datpo.report.choice_figure:figure10",
    "figure11": "datpo.report.curve_figures:figure11",
    "theory": "datpo.report.theory.verb:theory",
    "fork-table": "datpo.report.forks.tables:fork_table",
    "figure2": "datpo.report.forks.figures:figure2",
    "figure8": "datpo.report.forks.figures:figure8",
    "figure9": "datpo.report.forks.figures:figure9",
    "trace": "datpo.report.recount.trace:trace",
    "grade": "datpo.evaluate.grade:grade_file",
    "segment": "datpo.search.segment_file:segment",
    "credit": "datpo.report.credit:credit",
    "view": "datpo.report.trees.viewer:view",
    "figure3": "datpo.report.trees.picture:figure3",
}

# What a parameter's kind becomes on the command line.
KINDS: dict[Any, dict[str, Any]] = {
    Path: {"type": Path},
    Path | None: {"type": Path},
    str: {"type": str},
    str | None: {"type": str},
    list[Path]: {"type": Path, "nargs": "*"},
    list[str]: {"type": str, "action": "append"},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; a mistake of the user ends in one readable line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments or arguments[0] not in VERBS:
        print(f"usage: python -m datpo VERB --help, with VERB one of: {', '.join(VERBS)}", file=sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    module, name = VERBS[arguments[0]].split(":")
    verb = getattr(importlib.import_module(module), name)
    options = vars(_parser(arguments[0], verb).parse_args(arguments[1:]))
    files = [options.pop(parameter.name) for parameter in _parameters(verb) if _stands_alone(parameter)]
    try:
        drop_used(_paths([*files, *options.values()]))
        _print_rows(verb(*files, **options) or ())
    except (InputError, OSError) as error:
        print(f"datpo {arguments[0]}: {error}", file=sys.stderr)
        return 2
    return 0


def _parser(name: str, verb: Callable[..., Any]) -> argparse.ArgumentParser:
    """A command line made from the verb's own signature.

    A positional-only parameter stands by itself, any other becomes an `--option`. A list of files follows its option;
    a list of words is made of an option for each word, or none.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m datpo {name}",
        description=inspect.getdoc(verb),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    hints = get_type_hints(verb)
    for parameter in _parameters(verb):
        kind = hints[parameter.name]
        if _stands_alone(parameter):
            parser.add_argument(parameter.name, metavar=parameter.name.upper(), **KINDS[kind])
            continue
        words = kind == list[str]
        required = parameter.default is inspect.Parameter.empty
        parser.add_argument(
            f"--{parameter.name.replace('_', '-')}",
            required=required and not words,
            default=([] if words else None) if required else parameter.default,
            **KINDS[kind],
        )
    return parser


def _parameters(verb: Callable[..., Any]) -> Iterable[inspect.Parameter]:
    return inspect.signature(verb).parameters.values()


def _stands_alone(parameter: inspect.Parameter) -> bool:
    return parameter.kind is inspect.Parameter.POSITIONAL_ONLY


def _paths(values: Iterable[Any]) -> list[Path]:
    return [
        each for value in values for each in (value if isinstance(value, list) else [value]) if isinstance(each, Path)
    ]


def _print_rows(rows: Iterable[Row]) -> None:
    """Print what a verb returns as JSON Lines, in ASCII: no terminal or line splitter can break them.

    A reader that closes the pipe early, such as `head`, has seen enough.
    """
    for row in rows:
        try:
            print(json.dumps(row), flush=True)
        except BrokenPipeError:
            # Python would complain at exit that it cannot flush what is left.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return


if __name__ == "__main__":
    sys.exit(main())
