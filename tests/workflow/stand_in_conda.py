#!/usr/bin/env python3
"""Stands in for `conda` in tests: an environment is a folder whose `python` says that it was called.

It answers what Snakemake asks of conda. An environment keeps the file that it was made from, and conda.txt lists them.
What its `python` was called with, and for which environment, is noted in python.txt; then the python behind it in PATH
does the work.
"""

import json
import shutil
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
PYTHON = """#!/bin/sh
echo "$CONDA_PREFIX|$(command -v python)|$PYTHONPATH|${PYTHONNOUSERSITE:-}|$1 $2 $3" >> python.txt
PATH=${PATH#*:}
exec python "$@"
"""


def main(words: list[str]) -> None:
    """One call of `conda WORDS`."""
    if words[0] == "--version":
        print("conda 25.1.0")
    elif words[0] == "info":
        print(json.dumps({"conda_prefix": str(HOME), "platform": "linux-64"}))
    elif words[0] == "config":
        print(json.dumps({"get": {"channel_priority": "strict"}}))
    elif "create" in words:
        file, prefix = (Path(words[words.index(flag) + 1]) for flag in ("--file", "--prefix"))
        (prefix / "bin").mkdir(parents=True)
        (prefix / "conda-meta").mkdir()
        shutil.copy(file, prefix / "made_from.yaml")
        python = prefix / "bin/python"
        python.write_text(PYTHON)
        python.chmod(0o755)
        with open("conda.txt", "a") as made:
            made.write(f"{prefix}\n")


main(sys.argv[1:])
