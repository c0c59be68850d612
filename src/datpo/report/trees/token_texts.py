"""What each token of a response says, to be read by people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from tokenizers import Tokenizer

from datpo.core.errors import InputError
from datpo.search.segment import offsets_of


def token_texts(model: Path, tokens: Iterable[int]) -> list[str]:
    """What each token of a response says, one text a token; joined they are the response as training decodes it.

    A character that is cut between tokens belongs to the one that completes it, and those before it say "". So do end
    and other special tokens.

    Args:
        model: a checkpoint folder; its `tokenizer.json` is read.
        tokens: the ids of a response, from its first token on.

    Raises:
        InputError: the folder has no tokenizer that can be read.
    """
    tokenizer = _tokenizer(Path(model) / "tokenizer.json")

    def decode(ids: Sequence[int]) -> str:
        text: str = tokenizer.decode(ids, skip_special_tokens=True)
        return text

    ids = [int(token) for token in tokens]
    text = decode(ids)
    # a span starts where all characters before it are complete
    starts = [start for start, _ in offsets_of(decode, ids)]
    return [text[start:stop] for start, stop in pairwise([*starts, len(text)])]


@lru_cache(maxsize=4)
def _tokenizer(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise InputError(f"{path}: no tokenizer that can be read ({error})") from None
