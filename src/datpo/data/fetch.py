"""Existing models: from the Hugging Face hub at a fixed commit, or from a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from datpo.config import read_settings
from datpo.core.errors import InputError
from datpo.core.files import read_json, whole_folder, write_json

INDEX = "model.safetensors.index.json"
# Weights come as safetensors only: other formats can run code when they are loaded.
WANTED = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "LICENSE*")


def fetch_model(config: Path, out: Path) -> None:
    """Bring a base model into the folder `out`, whole or not at all.

    Files are hard links where the file system allows it, so a model takes its place on disk once.

    Args:
        config: YAML whose `source` holds `hub` and `revision` (a commit), or `path` (a folder).
        out: the checkpoint folder.

    Raises:
        InputError: the model cannot be had, or lacks its configuration, its tokenizer or a part of its weights.
    """
    found = _found(read_settings(config)["source"])
    check_model(found)
    with whole_folder(out) as folder:
        for pattern in WANTED:
            for file in found.glob(pattern):
                _link(file.resolve(), folder / file.name)


def fetch_embedder(config: Path, out: Path) -> None:
    """Bring an embedder, and the code it may come with, into the hub's cache, where jobs without a network find it.

    Args:
        config: YAML with `embedder`, a name on the hub, `embedder_revision`, and, where `embedder_remote_code` says
            so, `embedder_code_revision`, the commit of the repository its configuration takes code from.
        out: JSON that names the folders of the cache.

    Raises:
        InputError: something cannot be had, or the weights come in no format that is free of code.
    """
    settings = read_settings(config)
    name, revision = settings["embedder"], settings["embedder_revision"]
    folder = _snapshot(name, revision, [*WANTED, "*.md"], "train.embedder to a folder that holds it")
    if not any(folder.rglob("*.safetensors")):
        raise InputError(f"embedder {name}: its weights come as no *.safetensors, and other formats can run code")
    folders = {name: str(folder)}
    if settings["embedder_remote_code"]:
        modules = read_json(folder / "config.json").get("auto_map", {}).values()
        for repository in sorted({module.rpartition("--")[0] or name for module in modules}):
            code = _snapshot(repository, settings["embedder_code_revision"], ["*.py"], "another train.embedder")
            folders[f"{repository} (code)"] = str(code)
    write_json(out, {"embedder": name, "revision": revision, "folders": folders})


def check_model(folder: Path) -> None:
    """Make sure that a model folder is complete.

    Raises:
        InputError: names the first file that is missing.
    """
    needed = ["config.json"]
    if (folder / INDEX).is_file():
        needed += sorted(set(read_json(folder / INDEX)["weight_map"].values()))
    else:
        needed += ["model.safetensors"]
    for name in needed:
        if not (folder / name).is_file():
            raise InputError(f"{folder}: not a whole model, {name} is missing; fetch or copy it again")
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json")):
        raise InputError(f"{folder}: not a whole model, its tokenizer is missing; fetch or copy it again")


def _found(source: dict[str, Any]) -> Path:
    """The folder in which the model lies on this machine; downloaded into the hub's cache if it has to be."""
    if source.get("path"):
        folder = Path(source["path"]).expanduser()
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; correct the model's source.path")
        return folder
    hub, revision = source.get("hub"), source.get("revision")
    if not hub or not revision:
        raise InputError("a model's source needs `hub` and `revision`, or `path`")
    return _snapshot(hub, revision, WANTED, "source.path to a folder that holds it")


def _snapshot(hub: str, revision: str | None, wanted: Sequence[str], instead: str) -> Path:
    """Where a repository of the hub lies in its cache, downloaded if it has to be; `instead` is another way out."""
    try:
        return Path(snapshot_download(hub, revision=revision, allow_patterns=list(wanted)))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise InputError(
            f"model {hub} at {revision} cannot be downloaded ({' '.join(str(error).split())[:300]}); "
            f"check its name and the network, or set {instead}"
        ) from error


def _link(file: Path, target: Path) -> None:
    try:
        os.link(file, target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(file, target)
