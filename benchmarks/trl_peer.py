"""TRL's GRPOTrainer on the model, prompts and settings it is handed; runs in an environment of its own.

    python benchmarks/trl_peer.py FOLDER PROMPTS ROWS_AT_ONCE MAX_NEW_TOKENS

FOLDER is a checkpoint without a tokenizer. Each line on standard input makes one whole step, 16 samples of each of 16
prompts and four updates of 64 samples; the reply is a line of JSON: CPU seconds, generated tokens, versions.

Its cache is the default, transformers' dynamic one, and its fastest here: with answers of at most 192 tokens a step
took 7 CPU s with it, 12 with cache_implementation="static" and 22 with use_transformers_continuous_batching.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

END, PAD, GROUP = 2, 0, 16
VERSIONS = ", ".join(f"{name} {version(name)}" for name in ("trl", "torch", "transformers", "accelerate"))


def tokenizer_of(vocabulary: int) -> PreTrainedTokenizerFast:
    """Every token is a word, which no special one is a part of: `<17>`."""
    words = {f"<{i}>": i for i in range(vocabulary)}
    inner = Tokenizer(WordLevel(words, unk_token="<1>"))
    inner.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=f"<{END}>", pad_token=f"<{PAD}>", unk_token="<1>", padding_side="left"
    )


class InTurn(TrainerCallback):
    """Waits to be told to take a whole step, and says what it took."""

    def __init__(self, per_step: int) -> None:
        self.per_step, self.began, self.tokens = per_step, 0.0, 0

    def on_step_begin(self, args, state, control, **_):
        """The first update of a step waits."""
        if state.global_step % self.per_step == 0:
            if not sys.stdin.readline():
                sys.exit(0)
            self.began, self.tokens = time.process_time(), 0

    def on_step_end(self, args, state, control, **_):
        """The last one reports."""
        if state.global_step % self.per_step == 0:
            spent = time.process_time() - self.began
            print(json.dumps({"seconds": spent, "tokens": self.tokens, "versions": VERSIONS}), flush=True)


def main(folder: str, prompts: str, rows: int, longest: int) -> None:
    """Train until standard input ends."""
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa", dtype=torch.float32)
    tokenizer = tokenizer_of(model.config.vocab_size)
    asked = json.loads(Path(prompts).read_text())
    data = Dataset.from_dict({"prompt": [" ".join(f"<{token}>" for token in prompt) for prompt in asked]})
    per_step = len(asked) * GROUP // rows
    in_turn = InTurn(per_step)

    def reward(completion_ids: list[list[int]], **_: object) -> list[float]:
        in_turn.tokens += sum(map(len, completion_ids))
        return [float(sum(ids) % 2) for ids in completion_ids]

    settings = GRPOConfig(
        output_dir=str(Path(folder) / "trl"),
        per_device_train_batch_size=rows,
        steps_per_generation=per_step,
        gradient_accumulation_steps=1,
        num_generations=GROUP,
        max_completion_length=longest,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        beta=0.0,
        num_iterations=1,
        epsilon=0.2,
        epsilon_high=0.28,
        loss_type="dapo",
        learning_rate=1e-6,
        lr_scheduler_type="constant",
        max_steps=10_000,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        logging_steps=10_000,
        save_strategy="no",
        report_to=[],
        shuffle_dataset=False,
        disable_tqdm=True,
        seed=0,
    )
    trainer = GRPOTrainer(model, reward, settings, data, processing_class=tokenizer, callbacks=[in_turn])
    trainer.train()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
