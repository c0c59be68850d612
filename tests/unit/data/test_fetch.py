"""Base models from folders and from the hub: whole, or an error that says what is missing."""

from __future__ import annotations

import json
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
