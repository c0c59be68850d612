#!/usr/bin/env python3
"""Stands in for `conda` in tests: an environment is an empty folder, and activating it says so in PATH.

It answers what Snakemake asks of conda, and notes in conda.txt which file each environment was made from.
"""

import json
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent


def main(words: list[str]) -> None:
    """One call of `conda WORDS`."""
    if words[0] == "--version":
        print("conda 25.1.0")
    elif words[0] == "info":
        print(json.dumps({"conda_prefix": str(HOME), "platform": "linux-64"}))
    elif words[0] == "config":
        print(json.dumps({"get": {"channel_priority": "strict"}}))
    elif "create" in words:
        file, prefix = (words[words.index(flag) + 1] for flag in ("--file", "--prefix"))
        Path(prefix, "bin").mkdir(parents=True)
        Path(prefix, "conda-meta").mkdir()
        with open("conda.txt", "a") as made:
            made.write(f"{prefix} from {Path(file).name}\n")


main(sys.argv[1:])
