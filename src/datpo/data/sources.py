"""Problems somebody else wrote: from a local file, a file of the web, or a hub of data sets."""

from __future__ import annotations

import tempfile
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.data.files import check_rows, columns_of, load_file, problem_of_row

SECONDS = 60  # without a byte from a server


def load_source(entry: Mapping[str, Any], name: str) -> list[Problem]:
    """Every row of the source that a data entry of the configuration names, in its order.

    An entry is `{path}`, a JSON Lines file; `{url, sha256}`, the same on the web; or `{hub, revision}`, a data set of
    the Hugging Face hub, with optionally `subset`, `data_files` and `split` (as `datasets.load_dataset` knows them).
    In all kinds `fields` maps a problem's fields to columns where they are not the usual ones, `answer_after` is the
    mark behind which the key stands in its column, and `count` the number of rows there must be. A row without an id is
    called after its place.

    Raises:
        InputError: no such source; one with other bytes than `sha256` or another number of rows than `count`; an id
            under `drop` that is not there; no column for text or key; or a row whose text, key or id is missing or
            neither text nor a number, or whose key lacks its mark.
    """
    if "path" in entry:
        problems = load_file(entry["path"], entry, name)
    elif "url" in entry:
        problems = _from_web(entry, name)
    else:
        problems = _from_hub(entry, name)
    check_rows(problems, entry, name)
    return problems


def _from_web(entry: Mapping[str, Any], name: str) -> list[Problem]:
    url = entry["url"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, Path(url).name)
        try:
            with urllib.request.urlopen(url, timeout=SECONDS) as reply, open(file, "wb") as handle:
                while part := reply.read(1 << 20):
                    handle.write(part)
        except (OSError, HTTPException, ValueError) as error:
            raise InputError(
                f"data set {name!r}: {url} cannot be downloaded ({error}); check the address and the network, or "
                "download it elsewhere and give its `path`"
            ) from None
        return load_file(file, entry, name, url)


def _from_hub(entry: Mapping[str, Any], name: str) -> list[Problem]:
    from datasets import load_dataset  # a slow import that only this door needs
    from datasets.exceptions import DatasetsError

    hub, revision, split = entry["hub"], entry.get("revision"), entry.get("split", "train")
    try:
        rows = load_dataset(
            hub, entry.get("subset"), data_files=entry.get("data_files"), revision=revision, split=split
        )
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        raise InputError(
            f"data set {name!r}: cannot load {hub!r} ({error}); check its name, `revision` and `split`, "
            "or save it as a local file of problems and give the `path`"
        ) from None
    columns = columns_of(entry, name, rows.column_names)
    source = f"{hub}@{revision or 'unpinned'}:{split}"
    columns.pop("source", None)  # the commit says more
    mark = entry.get("answer_after")
    return [
        problem_of_row(f"{source}: row {n}", row, columns, f"{name}/{n}", source, mark) for n, row in enumerate(rows)
    ]
