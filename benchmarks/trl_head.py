"""Peak memory of a micro-batch through TRL's fused head; runs in TRL's environment.

    python benchmarks/trl_head.py FOLDER TOKENS

FOLDER is a checkpoint; prints the versions of what it runs, and the bytes by which the process grew beyond model,
gradients and AdamW's moments.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM
from trl.trainer.utils import add_fused_lm_head


def main(folder: str, tokens: int) -> None:
    """One forward and backward pass over rows of 512 tokens."""
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa", dtype=torch.float32)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-6)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    ids = torch.randint(3, model.config.vocab_size, (tokens // 512, 512))
    before = resident("VmRSS")
    out = model(input_ids=ids, labels=ids, fused_lm_head=True)
    ratio = torch.exp(out.log_probs - out.log_probs.detach())
    (-ratio.sum() / tokens).backward()
    grown = resident("VmHWM") - before
    print(", ".join(f"{name} {version(name)}" for name in ("trl", "torch", "transformers")))
    print(grown)


def resident(kind: str) -> int:
    """Bytes of this process now (VmRSS) or at its highest (VmHWM)."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind)]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
