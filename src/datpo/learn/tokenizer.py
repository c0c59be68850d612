"""The tokenizer of the tiny base model: byte-level BPE, so any text can be written, with few merges."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

# A number keeps its leading space and sign, so that a move is one token; `\boxed{` and the end of a paragraph
# are one each as well. A piece never spans two of these, hence a prompt that ends a paragraph has the same
# tokens alone as with a response behind it.
PIECES = r" ?[-+*]?\p{N}+| ?\\?\p{L}+\{?| ?[^\s\p{L}\p{N}]+\n*|\s+"
END, PAD = "<|end|>", "<|pad|>"


def build_tokenizer(corpus: Iterable[str], entries: int = 512) -> PreTrainedTokenizerFast:
    """A tokenizer that knows the pieces of `corpus` whole, and every other text byte by byte.

    There are at most `entries` tokens: the end of a text, padding, 256 bytes, and merges until every piece of
    the corpus is one token. It adds nothing to a prompt and has no chat template.

    Load it as `PreTrainedTokenizerFast`: beside a Qwen2 model `AutoTokenizer` insists on Qwen2's own class, which
    cuts texts by its own rule and would split every number off its sign.
    """
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=entries,
        special_tokens=[END, PAD],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=END, pad_token=PAD)
