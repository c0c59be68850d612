"""What a plan assumes, a line each."""

from __future__ import annotations

from datpo.plan.estimates import Plan
from datpo.plan.hours import AS_PUBLISHED, BY_METHOD, LARGER, OTHER_METHOD, SAMPLING
from datpo.plan.known import EVALUATED, KNOWN_LENGTH, LENGTH, LONGEST_PROMPT, PROMPT, SOLVED
from datpo.plan.made_step import LAST_FORK
from datpo.plan.ranges import Range


def _ends(factors: Range) -> str:
    return f"{factors.low:g} to {factors.high:g}"


def _whole(share: Range) -> str:
    return f"{share.mid:.0%} ({share.low:.0%} to {share.high:.0%})"


BY_PAPER = (
    "Hours by the paper are those of one A100 and Qwen2.5-3B. A training whose name is that of a row of its Tables "
    f"5 or 9 takes as long as there for as many questions, times {_ends(AS_PUBLISHED)}, for our code is another; one "
    "of the same method with other numbers as long as its method for as many generated tokens, times "
    f"{_ends(BY_METHOD)}; one of another method as long as the mean of all, times {_ends(OTHER_METHOD)}. Looks at "
    "the validation split come on top.",
    f"Another model takes longer in proportion to its parameters: from not at all to their power {LARGER:g}.",
    "Samples are drawn as fast as rollouts in the paper's Table 10, which takes 150.44 seconds for 16 questions of "
    f"8,952 tokens: 952 tokens a second, times {_ends(SAMPLING)} in time, for an engine for serving is several times "
    "as fast.",
)
BY_LOGS = (
    "Measured are training logs and Snakemake's benchmark files of this scale: a job's own, else those of jobs like "
    "it (of the same model and method, or benchmark), by operations. What is measured goes before what the paper "
    "says.",
)
SILENT = ("Of CPUs and of other domains than mathematics the paper says nothing: hours are known once measured.",)
WORK = (
    "Responses are as long as measured in trainings of the model; else, with the paper's limit, as GRPO's in its "
    f"Table 8, 547 tokens, times {_ends(KNOWN_LENGTH)} (but for the paper's own model and rows); else "
    f"{_whole(LENGTH)} of max_new_tokens. In evaluation they take {_whole(EVALUATED)} of its limit. A prompt has "
    f"{PROMPT} tokens.",
    "What a step trains is counted on made-up trees that go through the code of mini-batches and packs. Problems "
    f"are solved as often as measured in trainings of the model, else {SOLVED.mid:.0%} on average, evenly from never "
    f"to always. Forks lie evenly over the first {LAST_FORK:.0%} of a rollout. With this, tokens a question agree "
    "with the paper's Tables 8 and 14 to 10 %.",
    "Operations: 2 for each parameter and token forward, 4 backward, and 2 for what is computed again (logits; layers, "
    "with activation_checkpointing); in attention 4 for each layer, width of its heads, and pair of a token and one "
    "that it looks at, three times that in training, and once more. Not counted: the embedder, passes that only read "
    "attention, prompts but once a question, scoring, loading.",
)
MEMORY = (
    "Memory: masters, AdamW's moments and gradients in float32, products in the precision of the settings. In sampling "
    "stand a copy of the weights in that precision and the cache, which has room for as many rows as generation_batch "
    "allows, each as long as the longest prompt "
    f"({LONGEST_PROMPT} tokens where prompt.max_tokens does not limit it) and all that may follow, and for four "
    "fifths of them again, which exist twice while ended rows leave. Of vLLM the cache counts one such row, and the "
    "drawing a pass of the policy over what was drawn too; it takes as much as stands last: four fifths of what is "
    "free when it starts, less its weights, 2 GiB of compiled steps, moments, and that pass's logits and copy of the "
    "head. In the update stand gradients, "
    "copies of weights (of all; of the largest matrix, the head, with activation_checkpointing), activations of a pack "
    "of token_budget tokens (of all layers, or each layer's input and one layer at a time), and logits. The peak is "
    "what stands, and the larger of rollout (weights, cache, kept, drawing) and update (gradients, copies, "
    "activations, logits). Fragments come on top.",
    "Checked against measured peaks of updates of a model of 1 million parameters on a CPU (docs/plan.md).",
)


def notes_of(plan: Plan) -> list[str]:
    """The assumptions behind a plan's numbers."""
    sizes = ", ".join(f"{model} {size.parameters:,}" for model, size in plan.sizes.items())
    return [
        "The jobs are those of `snakemake all` at this scale that load a model; one that several tables need is "
        f"counted once. New tokens are without prompts, and a shared prefix counts once. Parameters: {sizes}.",
        *(BY_PAPER if any(each.paper for each in plan.estimates) else SILENT),
        *BY_LOGS,
        "The least of a sum has all its jobs at their least at once, the most all at their most.",
        *WORK,
        *MEMORY,
    ]
