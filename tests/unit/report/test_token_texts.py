import random

import pytest
from tokenizers import Tokenizer, decoders, models

from datpo.core.errors import InputError
from datpo.learn.tokenizer import END, build_tokenizer
from datpo.report.trees.token_texts import token_texts


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory):
    """The tiny model's kind: any byte is a token."""
    folder = tmp_path_factory.mktemp("byte-level")
    tokenizer = build_tokenizer(["From 3 +4 = 7.\n\nSo \\boxed{ +4}."])
    tokenizer.save_pretrained(folder)
    return folder, tokenizer.backend_tokenizer


@pytest.fixture(scope="module")
def byte_fallback(tmp_path_factory):
    """Llama's kind: bytes stand for what has no token, and the first space is dropped."""
    folder = tmp_path_factory.mktemp("byte-fallback")
    words = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "▁a", "b", "▁the", ".", "é", "\n"]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens(["</s>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder, tokenizer


def test_words_cut_characters_and_end_tokens(byte_level):
    folder, tokenizer = byte_level
    tokens = [*tokenizer.encode("So é½.\n\n").ids, tokenizer.token_to_id(END)]
    assert token_texts(folder, tokens) == ["So", " ", "", "é", "", "½", ".\n\n", ""]
    assert token_texts(folder, []) == []


@pytest.mark.parametrize("kind", ["byte_level", "byte_fallback"])
def test_any_tokens_add_up_to_their_text(kind, request):
    folder, tokenizer = request.getfixturevalue(kind)
    rng = random.Random(0)
    for _ in range(300):
        tokens = [rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randrange(1, 60))]
        texts = token_texts(folder, tokens)
        assert len(texts) == len(tokens)
        assert "".join(texts) == tokenizer.decode(tokens, skip_special_tokens=True)


def test_a_folder_without_a_tokenizer_is_named(tmp_path):
    with pytest.raises(InputError, match=r"tokenizer\.json: no tokenizer that can be read"):
        token_texts(tmp_path, [1])
