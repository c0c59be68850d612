"""An embedder with code of its own that was written for transformers 4 works as it did there."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from datpo.core.errors import InputError
from datpo.learn.embed import embedder

WORDS = ["[PAD]", "[UNK]", "so", "the", "answer", "is", "twelve"]
COMMITS = {"remote_code": True, "revision": "a" * 40, "code_revision": "b" * 40}
# As in the paper's embedder: what stands in no file of weights is computed as the model is built, and the mask is
# asked of transformers.
CODE = """
import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput


class OwnConfig(PretrainedConfig):
    model_type = "own"


class OwnModel(PreTrainedModel):
    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.words = torch.nn.Embedding(7, 8)
        self.register_buffer("places", torch.arange(32), persistent=False)
        self.register_buffer("waves", torch.cos(torch.arange(32.0)[:, None] * torch.arange(1.0, 9.0)), persistent=False)
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, input_ids, attention_mask=None, **_):
        state = self.words(input_ids) * self.waves[self.places[: input_ids.shape[1]]]
        bias = self.get_extended_attention_mask(attention_mask, input_ids.shape)[:, 0]
        return BaseModelOutput(last_hidden_state=(state @ state.mT + bias).softmax(-1) @ state)
"""


@pytest.fixture
def folder(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(tmp_path)
    (tmp_path / "own.py").write_text(CODE)
    auto_map = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    write(tmp_path / "config.json", {"model_type": "own", "auto_map": auto_map, "hidden_size": 8})
    parts = [("", "Transformer"), ("1_Pooling", "Pooling")]
    modules = [{"idx": i, "name": str(i), "path": path, "type": kind(name)} for i, (path, name) in enumerate(parts)]
    write(tmp_path / "modules.json", modules)
    (tmp_path / "1_Pooling").mkdir()
    write(tmp_path / "1_Pooling/config.json", {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True})
    save_file({"words.weight": weights()}, tmp_path / "model.safetensors")
    return tmp_path


def kind(name):
    return f"sentence_transformers.models.{name}"


def write(path, value):
    path.write_text(json.dumps(value))


def weights():
    return torch.randn(7, 8, generator=torch.Generator().manual_seed(0))


def test_what_stands_in_no_file_is_computed_and_the_mask_is_there(folder):
    vectors = embedder(str(folder), **COMMITS)(["so the answer is twelve", "so twelve"])
    for vector, words in zip(vectors, ([2, 3, 4, 5, 6], [2, 6]), strict=True):
        places = torch.arange(float(len(words)))[:, None]
        state = weights()[words] * torch.cos(places * torch.arange(1.0, 9.0))
        mean = ((state @ state.T).softmax(-1) @ state).mean(0)
        assert vector == pytest.approx((mean / mean.norm()).numpy(), abs=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("self.places[:", "(10**9 + self.places)[:", "IndexError"),
        ("+ bias)", ")", "texts beside it"),
    ],
)
def test_one_that_does_not_work_here_is_refused_at_once(folder, old, new, told):
    (folder / "own.py").write_text(CODE.replace(old, new))
    with pytest.raises(InputError, match=f"embedder .*: does not work here .*{told}"):
        embedder(str(folder), **COMMITS)


def test_equal_texts_have_equal_vectors(folder):
    one, other = embedder(str(folder), **COMMITS)(["the answer", "the answer"])
    assert np.array_equal(one, other)
