"""`python -m datpo VERB`: one verb per rule of the workflow, one option per file."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from datpo.core.errors import InputError

# Modules are imported only when their verb is called: most verbs need no torch.
VERBS = {
    "config": "datpo.config:write_settings",
    "data": "datpo.data.prepare:prepare_data",
    "fetch-model": "datpo.data.fetch:fetch_model",
    "pretrain": "datpo.learn.pretrain:pretrain",
    "train": "datpo.learn.trainer:train",
    "sample": "datpo.evaluate.sample:sample_file",
    "score": "datpo.evaluate.score:score_file",
    "metrics": "datpo.evaluate.metrics:metrics_file",
    "difficulty": "datpo.evaluate.difficulty:split_by_difficulty",
    "table2": "datpo.report.tables:table2",
    "figure-passk": "datpo.report.figures:pass_at_k_figure",
    "figure-curves": "datpo.report.figures:learning_curves",
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
    try:
        verb(**options)
    except (InputError, OSError) as error:
        print(f"datpo {arguments[0]}: {error}", file=sys.stderr)
        return 2
    return 0


def _parser(name: str, verb: Callable[..., Any]) -> argparse.ArgumentParser:
    """A command line made from the verb's own signature: `--option` for each parameter."""
    parser = argparse.ArgumentParser(
        prog=f"python -m datpo {name}",
        description=inspect.getdoc(verb),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    hints = get_type_hints(verb)
    for parameter in inspect.signature(verb).parameters.values():
        many = hints[parameter.name] == list[Path]
        required = parameter.default is inspect.Parameter.empty
        parser.add_argument(
            f"--{parameter.name.replace('_', '-')}",
            type=Path if many else hints[parameter.name],
            nargs="*" if many else None,
            required=required,
            default=None if required else parameter.default,
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
