"""Files that are whole or absent.

Everything written here goes to a temporary neighbour first and is renamed when it is complete, so a killed
job or a full disk never leaves a half-written file under its final name. What a killed job left under the temporary
name is overwritten by the next attempt.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from datpo.core.errors import InputError

Row = dict[str, Any]

SEAL = "SHA256SUMS"

_SURROGATE = re.compile("[\ud800-\udfff]")


@contextlib.contextmanager
def whole_file(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that appears under `path` only once it is complete and on disk.

    Raises:
        OSError: the disk is full or the folder cannot be written; nothing appears under `path` then.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    encoding = None if "b" in mode else "utf-8"
    try:
        with _space_for(path), open(partial, mode, encoding=encoding) as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Fill a folder that appears under `path` only once the block ends without an exception.

    Raises:
        OSError: the disk is full or the folder cannot be written; nothing appears under `path` then.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        with _space_for(path):
            yield partial
        sync_folder(partial)
        shutil.rmtree(path, ignore_errors=True)
        os.replace(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def _space_for(path: Path) -> Iterator[None]:
    """A full disk as the OSError that it is: libraries that write by themselves make errors of their own of it."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        if code := _full_disk(error):
            raise OSError(code, os.strerror(code), str(path)) from error
        raise


def _full_disk(error: BaseException | None) -> int | None:
    """The code of a full disk or a spent quota, if that is what an exception is about or was raised because of."""
    codes = (errno.ENOSPC, errno.EDQUOT)
    while error is not None:
        if isinstance(error, OSError) and error.errno in codes:
            return error.errno
        for code in codes:
            if f"(os error {code})" in str(error):  # as Rust's libraries write it
                return code
        error = error.__context__
    return None


@contextlib.contextmanager
def sealed_folder(path: str | Path) -> Iterator[Path]:
    """A whole folder that also holds what its files were, as `sha256sum --check SHA256SUMS` reads it.

    For what a job will go on from and nobody looks at: a lost block or a cut line would end in another number.
    """
    with whole_folder(path) as folder:
        yield folder
        (folder / SEAL).write_text(_digests(folder), encoding="utf-8")


def is_sealed(folder: Path) -> bool:
    """Whether a sealed folder holds every file that was sealed in it, to the byte, and no others."""
    try:
        return (folder / SEAL).read_bytes() == _digests(folder).encode()
    except OSError:
        return False


def _digests(folder: Path) -> str:
    lines = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / SEAL):
        with open(file, "rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
        lines.append(f"{digest}  {file.relative_to(folder).as_posix()}\n")
    return "".join(lines)


def sync_folder(folder: Path) -> None:
    """Force the bytes of every file in `folder` to disk, so that a rename cannot come to rest before them."""
    for file in folder.rglob("*"):
        if file.is_file():
            with open(file, "rb") as handle:
                os.fsync(handle.fileno())


def write_json(path: str | Path, value: Any) -> None:
    """Write one JSON document, indented, whole or not at all."""
    with whole_file(path) as handle:
        handle.write(_written(value, indent=2) + "\n")


def write_jsonl(path: str | Path, rows: Iterable[Row]) -> None:
    """Write one JSON object per line, whole or not at all."""
    with whole_file(path) as handle:
        for row in rows:
            handle.write(_written(row) + "\n")


def _written(value: Any, indent: int | None = None) -> str:
    """A value as JSON, its letters as they are; escaped if one is half a surrogate pair, which UTF-8 cannot hold."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text if is_unicode(text) else json.dumps(value, indent=indent)


def is_unicode(text: str) -> bool:
    """Whether a text is free of lone surrogates, which JSON can escape but no UTF-8 file can hold."""
    return _SURROGATE.search(text) is None


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file, without the byte order mark that some editors put before it.

    Raises:
        InputError: the file is missing, cannot be read, or is no UTF-8 text.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # a path with a NUL
        raise InputError(f"{path!r}: cannot be read ({error})") from None


def read_json(path: str | Path) -> Any:
    """Read one JSON document; a file that is none is named in the error."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a JSON document ({error}); delete it and run its rule again") from None


def read_jsonl(path: str | Path) -> list[Row]:
    """The rows of a JSON Lines file, as `located_rows` reads them."""
    return [row for _, row in located_rows(path)]


def located_rows(path: str | Path) -> Iterator[tuple[str, Row]]:
    """Every row with its place, `FILE: line N`; a blank line is counted but gives no row.

    Raises:
        InputError: the file is missing or no UTF-8 text, or a line is no JSON object or one with a key twice.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}: line {number}"
        try:
            row = json.loads(line, object_pairs_hook=_object)
        except json.JSONDecodeError:
            raise InputError(f"{place} is not JSON (is the file truncated?)") from None
        except RecursionError:
            raise InputError(f"{place} is nested too deeply to be read") from None
        except KeyError as error:
            raise InputError(f"{place}: the key {error} stands twice in one object") from None
        except ValueError:
            digits = sys.get_int_max_str_digits()
            raise InputError(f"{place} holds a number of more than {digits:,} digits; write it as text") from None
        if not isinstance(row, dict):
            raise InputError(f"{place} is not a JSON object")
        yield place, row


def _object(pairs: list[tuple[str, Any]]) -> Row:
    """A JSON object; KeyError if a key stands in it twice."""
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise KeyError(next(name for name in names if names.count(name) > 1))
    return row
