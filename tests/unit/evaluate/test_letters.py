r"""The spec of extraction is this table: what a response says, and the letter it is read as."""

import time

import pytest

from datpo.evaluate.letters import last_letter, letters, share_right


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        # a statement
        ("Because of that, the answer is (C).", "C"),
        ("The Answer  is: (c)", "C"),
        ("the answer is C", "C"),
        ("the answer is C because nothing else fits", "C"),
        ("The answer is **(C)**.", "C"),
        ("**The answer is** C", "C"),
        ("The answer is\n\n(E)", "E"),
        ("The answer is option D.", "D"),
        (r"The answer is $\boxed{\text{D}}$", "D"),
        (r"The answer is \(\boxed{F}\)", "F"),
        (r"so \boxed{B}.", "B"),
        (r"\fbox{\text{(B)}}", "B"),
        # the last one counts, even where it names no option
        ("The answer is (A). Wait, no. The answer is (B).", "B"),
        (r"\boxed{A}, so the answer is (B)", "B"),
        ("The answer is (B). The answer is (K).", None),
        ("The answer is (X)", None),
        # words are no letters
        ("The answer is A major chord.", None),
        ("The answer is I think unknown.", None),
        ("The answer is I.", "I"),
        ("The answer is A.", "A"),
        ("The answer is Dog.", None),
        ("The answer is D's.", None),
        ("The answer is c", None),
        # two letters at once are no statement
        ("The answer is (A) or (B).", None),
        ("The answer is A or B.", None),
        ("The answer is (A), (B)", None),
        ("The answer is (A) and (C)", None),
        ("The answer is (A), and that is it.", "A"),
        ("The answer is (A), B is wrong.", "A"),
        # nothing is guessed
        ("", None),
        ("(A)", None),
        ("A", None),
        ("The answer is not (A).", None),
        ("The answer is 42.", None),
        (r"\boxed{42}", None),
        (r"\boxed{AB}", None),
        (r"\boxed{A", None),
    ],
)
def test_what_a_response_is_read_as(text, letter):
    assert last_letter(text, options=10) == letter


def test_only_letters_of_options_are_answers():
    assert last_letter("The answer is (D).", options=4) == "D"
    assert last_letter("The answer is (D).", options=3) is None


@pytest.mark.parametrize("piece", ["answer is", "answer is (A) or (", "answer is *", r"\boxed{", "answer   ", "( *"])
def test_reading_stays_linear_in_hostile_text(piece):
    began = time.perf_counter()
    last_letter(piece * 50_000, options=10)
    assert time.perf_counter() - began < 2


def test_the_harness_is_given_a_letter_or_nothing_for_every_response():
    docs = [{"options": ["1", "2"]}, {"options": ["1", "2", "3"]}]
    read = letters([["the answer is (C)", "the answer is (A)"], ["the answer is (C)", "no"]], docs)
    assert read == [["", "A"], ["C", ""]]
    assert share_right({"answer": "A"}, [["A", "", "B", "A"]]) == {"avg": 0.5}
