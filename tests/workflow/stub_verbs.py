"""Stands in for `python -m datpo` in tests of the workflow: each verb writes what its rule declares, at once.

A copy of this file takes the place of src/datpo/__main__.py in a copy of the project. What a training does beside
that is told by environment variables: STUB_FAIL (runs and problem sets that fail), STUB_SLEEP (seconds a training
takes), STUB_WAIT (a training waits for SIGTERM on its first attempt).
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import yaml


def main() -> None:
    """Read `VERB --option value...` and write the outputs."""
    verb, options, name = sys.argv[1], {}, ""
    for word in sys.argv[2:]:
        if word.startswith("--") and " " not in word:
            name = word[2:]
            options[name] = []
        else:
            options[name].append(word)
    with open("calls.txt", "a") as calls:
        calls.write(f"{verb} {' '.join(options.get('out', []))} threads {os.environ['OMP_NUM_THREADS']}\n")
    print(f"{verb}: 100%", file=sys.stderr, flush=True)
    {
        "config": config,
        "data": data,
        "pretrain": checkpoint,
        "train": train,
        "difficulty": checkpoint,
        "table2": tables,
    }.get(verb, write_out)(options)


def write(path: Path, text: str = "stand-in\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_out(options: dict[str, list[str]]) -> None:
    out = Path(options["out"][0])
    for name in {"out", "scores"} & options.keys():
        write(Path(options[name][0]))
    if out.suffix == ".png":
        write(out.with_suffix(".svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>")


def config(options: dict[str, list[str]]) -> None:
    write(Path(options["out"][0]), yaml.safe_dump(json.loads(options["settings"][0]), sort_keys=True))


def data(options: dict[str, list[str]]) -> None:
    for name in ("out", "card", "set-aside"):
        write(Path(options[name][0]))
    fail_if_told(yaml.safe_load(Path(options["config"][0]).read_text())["set"], "data")


def fail_if_told(name: str, verb: str) -> None:
    if name in os.environ.get("STUB_FAIL", "").split():
        print(f"datpo {verb}: {name} has no more luck", file=sys.stderr)
        sys.exit(2)


def checkpoint(options: dict[str, list[str]]) -> None:
    write(Path(options["out"][0]) / "config.json", "{}")


def train(options: dict[str, list[str]]) -> None:
    run = yaml.safe_load(Path(options["config"][0]).read_text())["identity"]["run"]
    state = Path(options["work"][0]) / "state"
    resumed = state.exists()
    write(state)
    began = time.time()
    time.sleep(float(os.environ.get("STUB_SLEEP", 0)))
    if os.environ.get("STUB_WAIT") and not resumed:
        signal.signal(signal.SIGTERM, lambda *_: stopped(state))
        write(state.with_name("pid"), str(os.getpid()))
        time.sleep(120)
    if run in os.environ.get("STUB_FAIL", "").split():
        checkpoint(options)
    fail_if_told(run, "train")
    with open("trained.txt", "a") as trained:
        trained.write(json.dumps({"run": run, "began": began, "ended": time.time(), "resumed": resumed}) + "\n")
    checkpoint(options)
    write(Path(options["log"][0]))


def stopped(state: Path) -> None:
    time.sleep(1)
    write(state.with_name("last-words"))
    print("stopped by SIGTERM, state written", file=sys.stderr, flush=True)
    os._exit(143)


def tables(options: dict[str, list[str]]) -> None:
    for name in ("table2.csv", "table2_scores.csv", "table2_differences.csv", "table2.md", "table2.tex", "table2.html"):
        write(Path(options["out"][0]) / name, "\n".join(options["metrics"]))


if __name__ == "__main__":
    main()
