"""Every number of the paper's other tables has its place."""

import pytest
import yaml

from datpo.core.errors import InputError
from datpo.report.studies.published import AVERAGE, READERS, TITLES, load_published
from tests.unit.report.test_study_table import PUBLISHED, numbers

THREE, FOUR, TAUGHT = "Qwen2.5-3B-Base", "Qwen3-4B-Base", "Qwen2.5-3B-Instruct"


@pytest.mark.parametrize("study", READERS)
def test_every_number_of_a_section_is_reachable_once(study):
    section = yaml.safe_load(PUBLISHED.read_text())[study]
    published = load_published(PUBLISHED, study)
    assert sorted(published.value(*place) for place in published.values) == sorted(numbers(section))
    assert study in TITLES


@pytest.mark.parametrize(
    ("study", "place", "value"),
    [
        ("table3", (THREE, "ATB", "MATH500", "pass"), 80.7),
        ("table4", (THREE, "0.2->-0.2", "MATH500", "avg"), 63.4),
        ("table5", (TAUGHT, "Easy, G = 4", None, "hours"), 5.0),
        ("table5", (TAUGHT, "Hard, G = 16", None, "hours"), 17.5),
        ("table8", (THREE, "TreeRL", None, "tokens_per_question"), 11029.9),
        ("table9", (THREE, "DATPO, one-step off-policy", None, "hours"), 60.0),
        ("table10", (THREE, "DATPO", None, "seconds_diversity"), 13.65),
        ("table10", (THREE, "DATPO", None, "seconds_step"), 300.02),
        ("table11", (FOUR, "AttnRL", "GPQA-Diamond", "avg"), 38.4),
        ("table11", (FOUR, "AttnRL", "MMLU-Pro", "avg"), 56.6),
        ("table12", (THREE, "DATPO", "AIME26", "pass"), 33.3),
        ("table12", (THREE, "DATPO without difficulty adaptation", AVERAGE, "avg"), 21.9),
        ("table13", (THREE, "bge-m3", "MATH500", "avg"), 61.6),
        ("table14", (THREE, "TreeRL (4,3,4)", None, "tokens_per_question"), 17766.0),
        ("table14", (THREE, "TreeRL (4,3,4)", "MATH500", "avg"), 62.5),
    ],
)
def test_a_number_stands_where_the_paper_has_it(study, place, value):
    assert load_published(PUBLISHED, study).value(*place) == value


def test_names_are_told_apart_but_their_spellings_are_not():
    published = load_published(PUBLISHED, "table12")
    assert published.value(THREE.lower(), "DATPO", "aime2026", "pass") == 33.3
    assert published.value(FOUR, "DATPO", "AIME26", "pass") is None
    assert published.value(THREE, "datpo", "AIME26", "pass") is None
    assert published.value(THREE, "DATPO", "AIME26", "maj") is None
    assert published.averages_over(["math500", "amc23", "aime24", "aime25", "aime26"])
    assert not published.averages_over(["math500", "amc23"])


def test_a_study_of_one_s_own_has_no_numbers_of_the_paper():
    assert load_published(PUBLISHED, "table_of_mine").values == {}


@pytest.mark.parametrize(
    ("study", "text", "told"),
    [
        ("table3", "table4: {}", "section 'table3' is missing"),
        ("table3", "table3: {random: [1.0]}", "section 'table3' is missing or not as expected"),
        ("table10", "table10: {tea: 1.0}", "section 'table10' is missing or not as expected"),
        ("table8", "table8: {GRPO: many}", "section 'table8' is missing or not as expected"),
    ],
)
def test_a_section_of_another_shape_is_refused(tmp_path, study, text, told):
    path = tmp_path / "published.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        load_published(path, study)
