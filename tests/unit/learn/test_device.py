"""The device is named in the log, and a GPU that this build of torch cannot use is no reason to go on without it."""

import pytest
import torch

from datpo.core.errors import InputError
from datpo.learn import device

CPU = torch.device("cpu")


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """A node with an old driver, and a build of torch for CUDA."""
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57\nGCC version: 9\n")
    monkeypatch.setattr(device, "DRIVER", tmp_path / "version")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path / "version"


def test_the_device_is_said(capsys):
    assert device.usable(CPU) is CPU
    assert device.usable(torch.device("cuda", 0)).type == "cuda"
    assert capsys.readouterr().err == "device: cpu\ndevice: cuda\n"


def test_a_gpu_that_cannot_be_used_is_refused(gpu):
    with pytest.raises(InputError, match=r"built for CUDA 13.0, cannot use the GPU here \(NVRM .* 470.57\)"):
        device.usable(CPU)


@pytest.mark.parametrize("missing", ["driver", "build", "visible"])
def test_without_a_gpu_for_this_process_it_is_the_cpu(gpu, monkeypatch, missing):
    if missing == "driver":
        gpu.unlink()
    elif missing == "build":
        monkeypatch.setattr(torch.version, "cuda", None)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device.usable(CPU) is CPU
