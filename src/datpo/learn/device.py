"""Where the model is: said in every log, for a training on the wrong device is right in all but its time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from datpo.core.errors import InputError

DRIVER = Path("/proc/driver/nvidia/version")


def usable(device: torch.device) -> torch.device:
    """The device that was found, which goes to stderr.

    Raises:
        InputError: there is a GPU for this process, but its driver is too old for this build of torch.
    """
    built, hidden = torch.version.cuda, os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if device.type == "cpu" and built and DRIVER.exists() and not hidden:
        driver = DRIVER.read_text(encoding="utf-8").splitlines()[0]
        raise InputError(
            f"torch {torch.__version__}, built for CUDA {built}, cannot use the GPU here ({driver}): the driver is too "
            "old, or none of the node's GPUs is this job's; CUDA_VISIBLE_DEVICES=-1 goes on without one"
        )
    print(f"device: {device.type}", file=sys.stderr)
    return device
