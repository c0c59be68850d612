"""`python -m datpo plan`: what is printed, and what is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from datpo.__main__ import main
from datpo.config import load_config, write_settings
from datpo.plan.needs import plan_settings
from datpo.plan.tables import shown

ROOT = Path(__file__).resolve().parents[2]


def test_a_plan_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--scale", "ci", "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# Plan of the scale ci\n")
    for heading in ("By table and figure", "Trainings", "Samples", "Memory: GB by part, on a device of 4 GB (CPU)"):
        assert f"## {heading}\n" in said
    assert "hours are known once measured" in said
    assert "133,888" in said  # parameters


def test_a_plan_is_written_from_the_workflow_s_settings(tmp_path: Path) -> None:
    config = tmp_path / "plan.yaml"
    write_settings(json.dumps(plan_settings(load_config(ROOT, {"scale": "paper"}))), config)
    out = tmp_path / "paper/plan"
    assert main(["plan", "--config", str(config), "--results", str(tmp_path / "none"), "--out", str(out)]) == 0
    assert {path.name for path in out.parent.iterdir()} == {"plan.md", "plan.html", "plan.tex", "plan.csv"}
    table = pd.read_csv(out.with_suffix(".csv"), keep_default_na=False)
    assert len(table) == 35 + 197 + 3
    assert len(table.drop_duplicates(["kind", "model", "run", "seed", "at", "subject"])) == len(table)
    datpo = table[table["kind"] == "train"].set_index(["model", "run"]).loc["Qwen2.5-3B-Base", "datpo"]
    assert "table10" in datpo["needed_by"].split()
    assert float(datpo["paper_hours"]) == pytest.approx(61.3, abs=0.1)
    assert float(datpo["memory_masters"]) == 4 * 3_085_938_688
    parts = {
        "standing": ("masters", "moments", "embedder"),
        "rollout": ("weights", "cache", "kept", "sampling"),
        "update": ("gradients", "copies", "activations", "logits"),
    }
    sums = {name: sum(float(datpo[f"memory_{part}"]) for part in of) for name, of in parts.items()}
    assert float(datpo["memory_peak"]) == pytest.approx(sums["standing"] + max(sums["rollout"], sums["update"]))
    assert (table["memory_peak"].astype(float) <= 80e9).all()  # one A100
    page = out.with_suffix(".html").read_text()
    assert page.count("<table>") == 5
    assert "<script" not in page


def test_a_scale_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--scale", "huge"]) == 2
    assert "scale 'huge' has no file config/scales/huge.yaml" in capsys.readouterr().err


def test_the_plan_needs_no_torch() -> None:
    code = "import sys, datpo.plan.verb; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT / "src")}
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (12345.6, "12,346"), (99.6, "100"), (12.34, "12.3"), (1.234, "1.23"), (0.0123, "0.01")],
)
def test_numbers_have_two_or_three_digits(number: float, text: str) -> None:
    assert shown(number) == text
