"""Sampling with vLLM (0.32) in this process, beside the policy that is trained: docs/engines.md.

vLLM has weights of its own. They are sent to it, by its interface for weight transfer, before the first sample and the
first one after `forget`; in between it sleeps where it can, so that the update has the memory. Contexts are given
whole: vLLM finds what they share with earlier ones in its prefix cache, so `source` is not looked at.

vLLM's kernels and rounding are not those of the update. So what it says of the probabilities it drew from is only
compared with the policy's own, which are computed in a packed forward pass and stand in the continuations.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import numpy as np
import psutil
import torch

from datpo.core.engine import Continuation, EngineReport, Request
from datpo.core.errors import InputError
from datpo.core.tree import Floats, Ints
from datpo.learn.exact import Said, Sampled
from datpo.learn.policy import Policy

Exact = Callable[[Sequence[Sampled]], list[Said]]

# vLLM's own settings by environment: it runs in this process and asks no network. Its warnings would say at each update
# that tied heads and rotary embeddings are not among the weights.
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "HF_HUB_OFFLINE": "1",
}
BYTES = {"float32": 4, "bfloat16": 2}
ROWS = 512  # decoded together at most; where there is no room for so many, vLLM lets fewer in
SHARE = {"cuda": 0.8, "cpu": 0.1}  # of free memory that keys and values may take; the rest is for activations
GRAPHS = {"cuda": 2 << 30, "cpu": 0}  # bytes of vLLM's compiled steps, which stay while it sleeps
SPARE = 256  # tokens beside the longest row: vLLM keeps a block to itself, and a row takes whole ones
FAR_OFF = 0.5  # nats that a mean token is off, at which it is not rounding: of bfloat16 that is a fiftieth


class VLLMEngine:
    """Samples from a copy of the policy in vLLM; pure multinomial at the given temperature.

    A row's draw is fixed by its seed and the logits; these differ by rounding from batch to batch, so equal seeds give
    equal tokens most of the time, not always.

    Attributes:
        at_once: requests that are worth handing over together where somebody wants them in parts.

    Args:
        policy: the model whose weights are sampled as they are now; call `forget` after an update.
        temperature: divides the logits.
        precision: number format of vLLM's weights, keys and values.
        exact: gives log-probabilities and entropies of what was sampled; without, they are nan.
        reserved: bytes of device memory that this process has still to take for other things.
    """

    def __init__(
        self,
        policy: Policy,
        temperature: float,
        precision: str,
        exact: Exact | None = None,
        reserved: int = 0,
    ) -> None:
        self.policy, self.temperature, self.exact = policy, temperature, exact
        self.dtype = getattr(torch, precision)
        self.at_once = 16 * ROWS  # a sixteenth of the time at most the last few rows run alone
        self.end_tokens = sorted(policy.end_tokens)
        self._handles = itertools.count()
        self._report = EngineReport()
        self._current = self._asleep = False
        vllm = _imported()
        cuda = torch.cuda.is_available()
        self._sleeps = cuda and exact is not None  # what only samples has no use for the memory
        room, total = _room(policy, precision, reserved, "cuda" if cuda else "cpu")
        with self._alone():
            self.llm = vllm.LLM(
                str(policy.model.name_or_path),
                load_format="dummy",  # the policy's come before the first sample
                skip_tokenizer_init=True,
                generation_config="vllm",  # no penalties or limits that came with the checkpoint
                dtype=precision,
                seed=0,
                max_model_len=policy.context_window,
                max_num_seqs=ROWS,
                enable_prefix_caching=True,
                # a context in parts sets the row's random numbers back, which those of a CPU do not know how to do
                enable_chunked_prefill=cuda,
                kv_cache_memory_bytes=room,
                gpu_memory_utilization=room / total,  # is held against what is free before anything is loaded
                enforce_eager=not cuda,
                enable_sleep_mode=self._sleeps,
                logprobs_mode="processed_logprobs",  # at the temperature of sampling
                weight_transfer_config={"backend": _registered_transfer()},
                # each process of a training has an engine of its own
                distributed_executor_backend="external_launcher" if _among_several() else None,
            )
            self.llm.init_weight_transfer_engine({"init_info": {}})

    def sample(self, requests: Sequence[Request], keep: bool = False) -> list[Continuation]:
        """One continuation per request, in order; all are handed to vLLM at once."""
        if not requests:
            return []
        with self._alone():
            self._refresh()
            outputs = self.llm.generate(
                [{"prompt_token_ids": request.context.tolist()} for request in requests],
                [self._params(request) for request in requests],
                use_tqdm=False,
            )
        drawn = [output.outputs[0] for output in outputs]
        tokens = [np.array(each.token_ids, dtype=np.int64) for each in drawn]
        said = self._said(requests, tokens, drawn)
        self._report += EngineReport(
            context=sum(len(request.context) for request in requests),
            cached=sum(output.num_cached_tokens for output in outputs),
        )
        return [
            Continuation(token_T, *of_tokens, each.finish_reason, next(self._handles))
            for token_T, of_tokens, each in zip(tokens, said, drawn, strict=True)
        ]

    def forget(self) -> None:
        """Take the policy's weights anew before the next sample; until then leave the memory to others."""
        self._current = False
        if self._sleeps and not self._asleep:
            self.llm.sleep(level=2)
            self._asleep = True

    def report(self) -> EngineReport:
        """How far vLLM's probabilities were from the policy's, and what was cached, since the last report."""
        report, self._report = self._report, EngineReport()
        return report

    def _refresh(self) -> None:
        """Bring vLLM to the policy as it is now."""
        if self._current:
            return
        if self._asleep:
            self.llm.wake_up(tags=["weights"])
        self.llm.start_weight_update()
        # one by one, so that no second copy of them all is made
        weights = ((name, weight.detach().to(self.dtype)) for name, weight in self.policy.model.named_parameters())
        self.llm.update_weights({"update_info": {"weights": weights}})
        self.llm.finish_weight_update()
        if self._asleep:
            self.llm.wake_up(tags=["kv_cache"])
        self.llm.reset_prefix_cache()
        self._current, self._asleep = True, False

    def _params(self, request: Request) -> Any:
        return _imported().SamplingParams(
            temperature=self.temperature,
            seed=request.seed,
            max_tokens=request.max_new_tokens,
            stop_token_ids=self.end_tokens,
            ignore_eos=True,  # they are among the end tokens, if at all
            logprobs=None if self.exact is None else 0,  # that of the drawn token alone
            detokenize=False,
        )

    def _said(self, requests: Sequence[Request], tokens: Sequence[Ints], drawn: Sequence[Any]) -> list[Said]:
        """The policy's own log-probabilities and entropies, vLLM's held against them."""
        if self.exact is None:
            return [(np.full(len(token_T), np.nan),) * 2 for token_T in tokens]
        said = self.exact([(request.context, token_T) for request, token_T in zip(requests, tokens, strict=True)])
        theirs = [
            row[token].logprob for each in drawn for token, row in zip(each.token_ids, each.logprobs, strict=True)
        ]
        gaps = compared(np.concatenate([logprob_T for logprob_T, _ in said]), np.array(theirs))
        if gaps.gaps > FAR_OFF * gaps.tokens:
            raise RuntimeError(
                f"vLLM samples from another policy than the one that is trained: its log-probabilities are off by "
                f"{gaps.gaps / gaps.tokens:.2f} nats a token; set engine: hf, and please report the model"
            )
        self._report += gaps
        return said

    def _alone(self) -> torch.autocast:
        """vLLM's precision is its own: the learner's autocast must not reach into it."""
        return torch.autocast(self.policy.device.type, enabled=False)


def compared(policy_T: Floats, engine_T: Floats) -> EngineReport:
    """The engine's log-probabilities held against the policy's."""
    gap_T = policy_T - engine_T
    return EngineReport(
        tokens=len(gap_T),
        gaps=float(np.abs(gap_T).sum()),
        largest=float(np.abs(gap_T).max()),
        ratios=float(np.exp(gap_T).sum()),
    )


def installed_version() -> str:
    """The version of vLLM, whose CPU build has a name of its own.

    Raises:
        InputError: there is none.
    """
    for name in ("vllm", "vllm-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    raise InputError(
        "engine: vllm, but vLLM is not installed here; envs/learn_cuda.yaml has it for GPUs, "
        "tests/vllm/requirements.txt for CPUs; or set engine: hf"
    )


def _imported() -> Any:
    """The package vllm, set up on the way in."""
    if find_spec("vllm") is None:
        installed_version()
    os.environ.update(ENVIRONMENT)
    import vllm

    return vllm


def _among_several() -> bool:
    """Whether this is one of several processes that train together."""
    return torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1


def _room(policy: Policy, precision: str, reserved: int, device: str) -> tuple[int, int]:
    """Bytes for keys and values, enough for full context windows in all rows if there is so much; and of the device."""
    if device == "cuda":
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
    else:
        free, total = psutil.virtual_memory().available, psutil.virtual_memory().total
    config = policy.model.config
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    token = 2 * config.num_hidden_layers * config.num_key_value_heads * size * BYTES[precision]
    row = token * (policy.context_window + SPARE)
    weights = policy.model.num_parameters() * BYTES[precision]
    room = int(SHARE[device] * (free - reserved - weights - GRAPHS[device]))
    if room < row:
        raise InputError(
            f"engine: vllm has {max(room, 0) / 2**30:.1f} GiB of the {device} for keys and values, but one context "
            f"window of {policy.context_window} tokens takes {row / 2**30:.1f}; ask for a larger device, or engine: hf"
        )
    return min(ROWS * row, room), total


def _registered_transfer() -> str:
    """The name of the weight transfer within one process, at vLLM's registry of them."""
    from datpo.engines import vllm_transfer

    return vllm_transfer.NAME
