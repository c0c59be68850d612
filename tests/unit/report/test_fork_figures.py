"""Figures 2, 8 and 9: what is drawn, and that a model's text stays text."""

import xml.etree.ElementTree as ElementTree
from contextlib import contextmanager

import numpy as np
import pytest
from matplotlib import pyplot
from tokenizers import Tokenizer

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.core.saved import SavedTree, save_trees
from datpo.core.tree import RolloutTree
from datpo.evaluate.bootstrap import intervals
from datpo.learn.tokenizer import END, build_tokenizer
from datpo.report.forks import figures as fork_figures
from datpo.report.forks.explorations import Structure
from datpo.report.forks.figures import figure2, figure8, figure9, lines_of_structures
from datpo.report.forks.showcase import load_showcase
from datpo.report.forks.text import Line, lines_of, shown
from tests.trees import branch
from tests.unit.report.test_fork_tables import write

HOSTILE = "$x_1$ \\frac{a}{b} <script>&amp; {} % # ~\x00\u202e 漢 שלום e\u0301 ½.\n\nSo \\boxed{$^$}."


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    build_tokenizer(["From 3 +4 = 7.\n\nSo \\boxed{ +4}."]).save_pretrained(folder)
    return folder


@pytest.fixture
def drawn(monkeypatch):
    """The panels of every figure that is drawn, kept open."""
    seen = []
    real = fork_figures.figure

    @contextmanager
    def kept(*given, **options):
        with real(*given, **options) as groups:
            seen.append(groups)
            yield groups

    monkeypatch.setattr(fork_figures, "figure", kept)
    monkeypatch.setattr(pyplot, "close", lambda drawing: None)
    yield seen
    monkeypatch.undo()
    pyplot.close("all")


def encoded(text, checkpoint):
    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    return np.array([*tokenizer.encode(text).ids, tokenizer.token_to_id(END)])


def case(problem, tokens, forks, rewards=(0.0, 1.0)):
    """A base rollout of two sentences with a branch at each fork; rewards of the base and of its branches."""
    half = len(tokens) // 2
    signals = {"entropy": np.linspace(0, 2, len(tokens)), "sentence": (np.arange(len(tokens)) >= half).astype(float)}
    base = branch(None, 0, len(tokens), rewards[0], tokens, "stop", signals)
    branches = [branch(0, at, 1, rewards[1], [5]) for at in forks]
    return SavedTree(RolloutTree(Problem(problem, "?", "!"), np.array([1])).grow([base, *branches]))


def explored(folder, checkpoint, texts, forks, rewards=None):
    """Trees of problems p0, p1, ... in the order of their texts, of structures with their own forks."""
    (folder / "trees").mkdir(exist_ok=True)
    for name, places in forks.items():
        trees = [
            case(f"p{i}", encoded(text, checkpoint), places, (rewards or {}).get(i, (0.0, 1.0)))
            for i, text in enumerate(texts)
        ]
        save_trees(folder / f"trees/{name}.jsonl", trees)
    return folder / "trees"


FORKS = {"sent-entropy": [1, 6], "random": [2, 3], "parallel": []}


def test_the_showcase_is_chosen_by_its_rule(tmp_path, checkpoint):
    short, middle = "From 3 +4 = 7.", "From 3 +4 = 7.\n\nSo \\boxed{ +4}."
    texts = [short, middle, f"{short} {short} So 3.", "From 3 +4 = 3 = 7."]
    trees = explored(tmp_path, checkpoint, texts, FORKS, {0: (1.0, 1.0)})  # p0 is solved by all
    found = load_showcase(trees, checkpoint)
    assert found.place.startswith("Problem p1, repeat 1; this rollout is wrong")  # of p3, p1, p2 by length
    assert "".join(found.texts) == texts[1]
    assert found.forks == {"random": (2, 3), "sent-entropy": (1, 6)}
    assert found.sentences == [len(encoded(texts[1], checkpoint)) // 2]
    all_alike = explored(tmp_path, checkpoint, texts[:2], FORKS, dict.fromkeys(range(2), (0.0, 0.0)))
    assert load_showcase(all_alike, checkpoint).place.startswith("Problem p0")  # the lower of the two in the middle


def test_trees_that_cannot_be_shown_are_named(tmp_path, checkpoint):
    (tmp_path / "trees").mkdir()
    with pytest.raises(InputError, match="no trees here"):
        load_showcase(tmp_path / "trees", checkpoint)
    trees = explored(tmp_path, checkpoint, ["From 3 +4 = 7."], {"random": []})
    with pytest.raises(InputError, match="no structure forked"):
        load_showcase(trees, checkpoint)
    save_trees(trees / "atb.jsonl", [case("p0", encoded("So 3 +4 = 7.", checkpoint), [2])])
    with pytest.raises(InputError, match="'p0': random grew from another base rollout"):
        load_showcase(trees, checkpoint)
    save_trees(trees / "atb.jsonl", [case("other", encoded("From 3 +4 = 7.", checkpoint), [2])])
    with pytest.raises(InputError, match="random has trees of other problems than atb"):
        load_showcase(trees, checkpoint)


def test_figure8_has_a_bar_a_token_and_a_mark_a_fork(tmp_path, checkpoint, drawn):
    text = "From 3 +4 = 7.\n\nSo \\boxed{ +4}."
    trees = explored(tmp_path, checkpoint, [text], FORKS)
    figure8(trees, checkpoint, tmp_path / "figure8.png")
    [[[entropies, rows]]] = drawn
    tokens = len(encoded(text, checkpoint)) - 1  # the end token says nothing
    assert [bar.get_height() for bar in entropies.patches] == pytest.approx(np.linspace(0, 2, tokens + 1)[:-1])
    assert [label.get_text() for label in entropies.get_xticklabels()][-1] == "}."
    assert ".↵↵" in [label.get_text() for label in entropies.get_xticklabels()]
    assert [label.get_text() for label in rows.get_yticklabels()] == ["random", "sent-entropy"]
    marks = [line for line in rows.lines if line.get_linestyle() == "None"]
    assert [list(line.get_xdata()) for line in marks] == [[2, 3], [1, 6]]
    assert entropies.get_xlim() == rows.get_xlim()


def test_figure9_marks_the_word_before_which_a_rule_forks(tmp_path, checkpoint, drawn):
    text = "From 3 +4 = 7.\n\nSo \\boxed{ +4}."
    trees = explored(tmp_path, checkpoint, [text], FORKS)
    figure9(trees, checkpoint, tmp_path / "figure9.png")
    [[[panel]]] = drawn
    written = [(word.get_text(), word.get_position()[0]) for word in panel.texts]
    assert written == [
        *(("From", 0), ("3", 5), ("+4", 7), ("=", 10), ("7.", 12), ("↵↵", 14), ("random", -1), ("sent-entropy", -1)),
        *(("So", 0), ("\\boxed{", 3), ("+4}.", 11), ("sent-entropy", -1)),
    ]
    assert [list(line.get_xdata()) for line in panel.lines] == [[6, 9], [4], [0]]  # behind " 3", behind " +4", ...
    assert (tmp_path / "figure9.svg").exists()


@pytest.mark.filterwarnings("error")
def test_hostile_text_is_shown_as_it_is(tmp_path, checkpoint):
    trees = explored(tmp_path, checkpoint, [HOSTILE], {"random": [3, 9], "<b>$x$": [4]})
    for draw in (figure8, figure9):
        draw(trees, checkpoint, tmp_path / "figure.png")
        written = "".join(ElementTree.parse(tmp_path / "figure.svg").getroot().itertext())
        assert "<b>$x$" in written
        if draw is figure9:
            for word in ("$x_1$", "\\frac{a}{b}", "<script>&amp;", "½.", "\\boxed{$^$}."):
                assert word in written
            assert not set("\x00\u202e漢ש\u0301") & set(written)


def test_what_cannot_be_shown_takes_one_column_too():
    assert shown("a\n\tb") == "a↵ b"
    assert shown("\x00\u202e漢ש\u0301\ud800🙂") == "\ufffd" * 7
    assert len(shown(HOSTILE)) == len(HOSTILE)


def test_lines_end_behind_breaks_and_between_words():
    texts = ["ab", " cd", " ef", ".\n\n", "g" * 12, "", " h"]
    lines = lines_of(texts, {"one": [1, 4], "two": [3, 5, 6]}, 8)
    assert lines == [
        Line("ab cd ", {"one": [2]}),
        Line("ef.↵↵", {"two": [2]}),
        Line("g" * 8, {"one": [0]}),
        Line("gggg h", {"two": [4, 4]}),
    ]
    assert "".join(line.text for line in lines) == shown("".join(texts))
    assert lines_of(["a", ""], {"one": [1]}, 8) == [Line("a", {"one": [1]})]  # before a token that says nothing
    assert lines_of([""], {}, 8) == [Line("", {})]


def structures(*given):
    return [
        {
            "name": f"{method}-{roots}-{more.get('max_forks', '')}{more.get('fork_rule', '')}",
            "method": method,
            "numbers": {"roots": roots, **more},
        }
        for method, roots, more in given
    ]


def test_figure2_has_a_line_for_parallel_and_for_each_rule(tmp_path, drawn):
    tree = {"max_forks": 2, "max_siblings": 2, "fork_rule": "random"}
    given = structures(("grpo", 8, {}), ("grpo", 4, {}), ("datpo", 2, tree))
    rows = [
        {
            "structure": entry["name"],
            "problem": problem,
            "repeat": repeat,
            "right": right,
            "tokens": tokens,
            "leaves": 4,
            "forks": 0,
            "length": 9,
            "sibling_diversity": "",
            "nnd": "",
            "mpd": "",
            "wcr5": "",
            "wcr10": "",
        }
        for entry, tokens, solved in zip(given, (80, 40, 30), ((1, 1), (1, 0), (0, 0)), strict=True)
        for problem, right in zip("pq", solved, strict=True)
        for repeat in range(2)
    ]
    config, rollouts = write(tmp_path, table=rows, structures=given)
    figure2(config, rollouts, tmp_path / "figure2.png")
    [[[panel]]] = drawn
    lines = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in panel.lines}
    assert lines == {"parallel": ([40, 80], [50, 100]), "random": ([30], [0])}
    assert [note.get_text() for note in panel.texts] == ["4", "8", "2"]
    band = panel.collections[0].get_paths()[0].vertices
    (interval,) = intervals(np.array([[100.0], [0.0]]), 500, 3)
    assert {band[band[:, 0] == 40, 1].min(), band[band[:, 0] == 40, 1].max()} == {interval.low, interval.high}


def test_lines_of_one_rule_are_told_apart_by_what_differs():
    entries = structures(
        ("datpo", 1, {"max_forks": 4, "fork_rule": "atb"}),
        ("datpo", 2, {"max_forks": 2, "fork_rule": "atb"}),
        ("datpo", 4, {"max_forks": 2, "fork_rule": "atb"}),
        ("treerl", 2, {"forks": 2}),
    )
    lines = lines_of_structures([Structure(**entry) for entry in entries])
    assert {name: [each.numbers["roots"] for each in mine] for name, mine in lines.items()} == {
        "ATB (max_forks 4)": [1],
        "ATB (max_forks 2)": [2, 4],
        "TreeRL": [2],
    }
    same = structures(("grpo", 1, {"clip": [0.1, 0.1]}), ("grpo", 1, {"clip": [0.2, 0.2]}))
    with pytest.raises(InputError, match="differ in more than a figure can show"):
        lines_of_structures([Structure(**entry) for entry in same])
