"""The check of a GPU, tried on a CPU with a small model: all sections run, and what goes wrong becomes a line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch
from benchmarks import gpu_check
from benchmarks.gpu import attention
from benchmarks.gpu.bench import SCALES, SHAPES, Bench, Finding, held
from benchmarks.gpu.generation import prompts
from benchmarks.gpu.served import SAME_POLICY, SURE
from benchmarks.gpu.step import PAPER, papers_step
from benchmarks.gpu.update import planned
from benchmarks.made import methods, policy

from datpo.config import load_config, read_settings
from datpo.learn.exact import exact
from datpo.plan.made_step import made_step
from datpo.plan.sizes import size_of

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="what is held here is a CPU's run")


def run(tmp_path, *arguments):
    code = gpu_check.main(["--size", "small", "--out", str(tmp_path), *arguments])
    return code, json.loads((tmp_path / "gpu_check.json").read_text())


def fake(monkeypatch, **sections):
    monkeypatch.setattr(gpu_check, "SECTIONS", sections)


def test_every_section_has_its_lines_and_none_is_wrong(tmp_path, capsys):
    code, found = run(tmp_path)
    assert [row["what"] for row in found["rows"] if row["verdict"] in ("NO", "error")] == []
    assert code == 0
    assert found["finished"]
    assert found["machine"]["torch"] == torch.__version__
    assert list(dict.fromkeys(row["section"] for row in found["rows"])) == list(gpu_check.SECTIONS)
    values = {row["what"]: row for row in found["rows"] if row["value"] is not None}
    told = (
        "error of chains, float32",
        "gradient of a mini-batch",
        "update, packed",
        "hf engine, 8 rows",
        "of it rollout",
    )
    for beginning in (*told, "peak memory of the update", "the paper's step, extrapolated"):
        assert any(what.startswith(beginning) for what in values), beginning
    assert values["tokens alike in the same step twice"]["value"] == 100
    assert values["loss of the same step twice, difference"]["value"] == 0
    table = (tmp_path / "gpu_check.md").read_text()
    assert table.count("\n") == len(found["rows"]) + 2
    assert table in capsys.readouterr().out


def test_an_error_is_a_line_and_the_others_run(tmp_path, monkeypatch):
    def bad(bench):
        yield Finding("before", 1.0)
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 9 GiB")

    fake(monkeypatch, bad=(bad, 0), good=(lambda bench: iter([Finding("behind", 2.0)]), 0))
    code, found = run(tmp_path)
    assert code == 1
    assert [(row["section"], row["verdict"]) for row in found["rows"]] == [("bad", ""), ("bad", "error"), ("good", "")]
    assert found["rows"][1]["note"] == "OutOfMemoryError: CUDA out of memory. Tried to allocate 9 GiB"


def test_a_section_that_takes_too_long_is_stopped_and_the_rest_is_not_begun(tmp_path, monkeypatch):
    def slow(bench):
        yield Finding("in time", 1.0)
        time.sleep(60)

    fake(monkeypatch, slow=(slow, 0), late=(lambda bench: iter([Finding("never", 1.0)]), 30))
    code, found = run(tmp_path, "--minutes", "0.02")
    assert code == 1
    first, stopped, late = found["rows"]
    assert (first["what"], stopped["verdict"], late["verdict"]) == ("in time", "error", "skipped")
    assert stopped["note"].startswith("TimeoutError")


def test_what_was_found_stands_in_the_file_at_once(tmp_path, monkeypatch):
    seen = []

    def section(bench):
        yield Finding("first", 1.0)
        seen.append(json.loads((tmp_path / "gpu_check.json").read_text()))

    fake(monkeypatch, only=(section, 0))
    run(tmp_path)
    assert [row["what"] for row in seen[0]["rows"]] == ["first"]
    assert not seen[0]["finished"]


def test_a_missed_limit_is_wrong_and_no_number_too(tmp_path, monkeypatch):
    lines = [held("small", 0.1, 1), held("large", 2, 1), held("none", float("nan"), 1)]
    assert [line.verdict for line in lines] == ["yes", "NO", "NO"]
    fake(monkeypatch, limits=(lambda bench: iter(lines), 0))
    assert run(tmp_path)[0] == 1


def test_a_layout_with_another_mask_is_found_out(monkeypatch):
    class Causal(attention.DenseTreeAttention):
        """Every token sees all before it, those of other branches too."""

        def __init__(self, pack, device):
            super().__init__(pack, device)
            self.mask = self.mask.new_ones(self.mask.shape).tril()

    monkeypatch.setattr(attention, "ChainAttention", Causal)
    errors = list(attention._errors(Bench(SCALES["small"], 1, "cpu")))
    assert {line.verdict for line in errors if "chains" in line.what} == {"NO"}
    assert {line.verdict for line in errors if "chains" not in line.what} == {"yes"}


def test_filler_behind_a_pack_changes_nothing():
    class Filled(attention.DenseTreeAttention):
        """Three more tokens, which see themselves and are seen by no other."""

        def __init__(self, pack, device):
            super().__init__(pack, device)
            self.length = len(pack.token_T) + 3
            self.mask = torch.block_diag(self.mask, torch.eye(3, dtype=torch.bool))

    bench = Bench(SCALES["small"], 1, "cpu")
    pack = attention.packed(bench.tree(13, attention.np.random.default_rng(0)))
    plain, filled = (
        attention.Inputs(bench, pack, torch.float32, layout(pack, bench.device)).work()
        for layout in (attention.DenseTreeAttention, Filled)
    )
    for one, other in zip(plain, filled, strict=True):
        assert one.shape == other.shape
        assert torch.allclose(one, other, atol=1e-6)


def test_the_paper_s_step_is_reckoned_from_what_was_measured():
    bench = Bench(SCALES["small"], 1, "cpu")
    assert papers_step(bench, 8).verdict == "skipped"
    bench.rates = {"hf engine, 8 rows: a token": 0.02, "packed token": 1e-3}
    work = made_step(methods()["datpo"], PAPER)
    batches = 16 * 4 / 8 + -(-16 * (work.leaves - 4) // 8)
    assert papers_step(bench, 8).value == pytest.approx(1024 * batches * 0.02 + work.packed * 1e-3)


def test_the_large_size_is_the_paper_scale_s():
    config = load_config(Path(__file__).resolve().parents[3], {"scale": "paper"})
    scale, train = SCALES["qwen2.5-3b"], config["train"]
    assert (scale.token_budget, scale.logit_budget) == (train["token_budget"], train["logit_budget"])
    assert PAPER.token_budget == scale.token_budget
    assert {train["generation_batch"], config["evaluation"]["generation_batch"]} <= set(scale.batches)
    known = read_settings(Path(__file__).resolve().parents[3] / "config/hardware.yaml")["models"]["Qwen/Qwen2.5-3B"]
    assert (
        sum(p.numel() for p in policy(scale.size, "meta").model.parameters())
        == size_of(known, "hardware.yaml").parameters
    )


def test_the_update_is_planned_for_a_large_gpu():
    plan = planned(SCALES["qwen2.5-3b"], "bfloat16")
    assert plan.masters + plan.moments + plan.gradients == 16 * 3_085_938_688
    assert 50e9 < plan.standing + plan.update < 80e9


@pytest.mark.parametrize("leaves", SHAPES)
def test_shapes_have_as_many_leaves_as_they_say(leaves):
    roots, forks, siblings = SHAPES[leaves]
    assert roots * (1 + forks * siblings) == leaves


def test_biases_that_do_not_reach_vllm_would_show():
    bench = Bench(SCALES["small"], 1, "cpu")
    sampled = [(request.context, request.context) for request in prompts(bench, 8)]
    before = exact(bench.policy, sampled, 400, 2**16, 1.0)
    biases = [weight for name, weight in bench.policy.model.named_parameters() if name.endswith(".bias")]
    assert len(biases) == 3 * bench.scale.size.layers
    with torch.no_grad():
        for bias in biases:
            assert bias.std() == pytest.approx(1, rel=0.3)
            bias.zero_()
    after = exact(bench.policy, sampled, 400, 2**16, 1.0)
    change = [abs(one - other).mean() for (one, _), (other, _) in zip(before, after, strict=True)]
    assert min(change) > SURE * SAME_POLICY["float32"]
