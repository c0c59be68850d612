"""What `make gpu-check` holds of vLLM, on its build for a CPU: else a GPU would be the first to run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


def test_all_lines_of_vllm_are_fine(tmp_path):
    command = [sys.executable, "-m", "benchmarks.gpu_check", "--only", "vllm", "--size", "small", "--out", tmp_path]
    path = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    said = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=False)
    assert said.returncode == 0, (said.stdout + said.stderr)[-3000:]
    found = json.loads((tmp_path / "gpu_check.json").read_text())
    assert found["finished"] and found["machine"]["vllm"].startswith("0.32")
    rows = {row["what"]: row for row in found["rows"]}
    assert {row["verdict"] for row in rows.values()} == {"", "yes"}
    value = {what.removeprefix("vLLM, "): row["value"] for what, row in rows.items()}
    gap = value["mean gap of a token after the policy has moved"]
    assert value["the policy has moved, mean change of a token"] > 1000 * gap  # so the new weights have arrived
    assert value["mean gap of a token"] < 1e-5
    assert value["first tokens that equal seeds draw otherwise"] == 0
    assert value["all tokens that equal seeds draw alike"] == 100
    assert value["8 rows"] > 0
