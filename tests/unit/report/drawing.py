"""What a figure shows, read back from it."""

import xml.etree.ElementTree as ET

import numpy as np
import yaml
from matplotlib import image


def assert_drawn(png):
    """Both files are there and not blank; returns the text of the SVG."""
    pixels = image.imread(png)[..., :3]
    assert min(pixels.shape[:2]) > 200
    assert pixels.std() > 0.05
    return " ".join("".join(ET.parse(png.with_suffix(".svg")).getroot().itertext()).split())


def panels(figure):
    """The panels that show something, in reading order."""
    return [panel for panel in figure.get_axes() if panel.axison]


def lines(panel):
    """The named lines of a panel: name -> points."""
    return {
        line.get_label(): np.transpose(line.get_data()).tolist()
        for line in panel.get_lines()
        if not line.get_label().startswith("_")
    }


def ends(panel):
    """The lower and upper ends of all bars of a panel, in the order they were drawn."""
    return [
        segment[:, 1].tolist()
        for collection in panel.collections
        if hasattr(collection, "get_segments")
        for segment in collection.get_segments()
    ]


def write_study(folder, rows, **changed):
    """`rows`: label -> run, or (run, numbers, train); a run is called `METHOD_x` or like its method."""
    whole = []
    for label, row in rows.items():
        run, numbers, train = row if isinstance(row, tuple) else (row, {}, {})
        method = run.split("-")[0]
        whole.append({"label": label, "run": run, "method": method, "numbers": numbers, "train": train})
    study = {"study": "figure", "scale": "tiny", "models": ["small"], "benchmarks": ["moves"], "seeds": [0]}
    study |= {"columns": [], "checkpoints": {}, "rows": whole, "against": None, **changed}
    path = folder.root / "study.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    return path
