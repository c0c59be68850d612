"""What the numbers were measured on."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

import torch

from datpo.core.errors import InputError
from datpo.engines.vllm import installed_version

PACKAGES = ("torch", "triton", "transformers", "accelerate")


def facts() -> dict[str, str]:
    """The machine and the versions of what computes on it, in words."""
    found = {"python": platform.python_version(), "processor": platform.processor() or platform.machine()}
    found |= {name: _version(name) for name in PACKAGES} | {"vllm": _vllm()}
    found["gpu"] = "none"
    if torch.cuda.is_available():
        about = torch.cuda.get_device_properties(0)
        found["gpu"] = about.name
        found["gpu memory"] = f"{about.total_memory / 2**30:.0f} GiB"
        found["capability"] = f"{about.major}.{about.minor}"
        found["multiprocessors"] = str(about.multi_processor_count)
        found["cuda"] = str(torch.version.cuda)
        found["driver"] = _driver()
    return found


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _vllm() -> str:
    try:
        return installed_version()
    except InputError:
        return "not installed"


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError) as error:
        return f"not told ({type(error).__name__})"
