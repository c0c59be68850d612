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
        # nor are symbols, and they take no letter back
        ("The answer is I = 2.5 A", None),
        ("The answer is A = 5 m^2.", None),
        ("The answer is F = 12 N", None),
        ("The answer is $F = 12$ N", None),
        ("The answer is (F = 12 N)", None),
        ("The answer is (A + 1)", None),
        ("The answer is C-14", None),
        ("The answer is B cells", None),
        ("The answer is B-lymphocytes.", None),
        ("The answer is G protein", None),
        ("The answer is D major.", None),
        ("The answer is E. coli", None),
        ("The answer is **E. coli**.", None),
        ("The answer is H+", None),
        ("The answer is J/mol", None),
        ("The answer is A.D. 70", None),
        ("The answer is C#", None),
        ("The answer is (C). That is, the answer is F = 12 N.", "C"),
        (r"\boxed{c}", None),
        (r"\boxed{\text{c}}", None),
        (r"The answer is $\boxed{c}$", None),
        (r"\boxed{F = 12}", None),
        # right ones, however they are written
        ("The answer is (C", "C"),
        ("The answer is (C.", "C"),
        ("The answer is C)", "C"),
        ("The answer is C).", "C"),
        ("**Answer: (C)**", "C"),
        ("**Answer:** C", "C"),
        ("**Answer**: C", "C"),
        (r"\textbf{Answer:} C", "C"),
        ("Answer: I think it is (C)", None),
        ("answer is C because it is", "C"),
        ("the answer is (C) 42", "C"),
        ("the answer is (C) Paris", "C"),
        ("the answer is C. Paris", "C"),
        ("The answer is D. all of the above", "D"),
        ("the answer is C: Paris", "C"),
        ("the answer is C - Paris", "C"),
        ("The answer is C, which is Paris.", "C"),
        ("The answer is C (Paris).", "C"),
        ("the answer is **C**, because", "C"),
        ("the answer is C\nBecause it is", "C"),
        (r"the answer is \(C\)", "C"),
        (r"the answer is $C$.", "C"),
        (r"the answer is \text{C}.", "C"),
        ('The answer is "C".', "C"),
        ("The answer is [C]", "C"),
        (r"\boxed{\text{C}}", "C"),
        (r"\boxed{(C)}", "C"),
        (r"\boxed{(c)}", "C"),
        (r"\boxed{C.}", "C"),
        ("The correct option is C", "C"),
        ("The correct answer is option (C)", "C"),
        ("**The answer is (C)**\n\n(A) is wrong because of that.", "C"),
        ("The answer is D and not (A)", "D"),
        # two letters at once are no statement
        ("The answer is (A) or (B).", None),
        ("The answer is A or B.", None),
        ("The answer is (A), (B)", None),
        ("The answer is (A) and (C)", None),
        ("The answer is A, B", None),
        ("The answer is A,B.", None),
        ("The answer is A, B, or C", None),
        ("The answer is A and B are both right", None),
        ("The answer is (A)(B)", None),
        ("The answer is (A) (B)", None),
        ("The answer is (A) and B", None),
        ("The answer is (A) and B.", None),
        ("The answer is A and (B)", None),
        ("The answer is (A)&(B)", None),
        ("The answer is (A) + (B)", None),
        ("The answer is B/C", None),
        ("The answer is **(A)** or **(B)**", None),
        (r"\boxed{A} or \boxed{B}", None),
        (r"\boxed{A}, \boxed{B}, \boxed{C}", None),
        (r"$\boxed{\text{A}}$ and $\boxed{\text{B}}$", None),
        (r"\boxed{A}\text{ and }\boxed{B}", None),
        (r"\boxed{A, B}", None),
        (r"\boxed{(A) or (B)}", None),
        ("The answer is (C). No, the answer is (A) or (B).", None),
        ("The answer is (A) or (B). So the answer is (B).", "B"),
        (r"\boxed{A}, no: \boxed{B}", "B"),
        (r"\boxed{A} \boxed{B}", "B"),
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


@pytest.mark.parametrize(
    "piece",
    ["answer is", "answer is (A) or (", "answer is *", r"\boxed{", "answer   ", "( *", r"\boxed{A},", "answer is A, "],
)
def test_reading_stays_linear_in_hostile_text(piece):
    began = time.perf_counter()
    last_letter(piece * 50_000, options=10)
    assert time.perf_counter() - began < 2


def test_the_harness_is_given_a_letter_or_nothing_for_every_response():
    docs = [{"options": ["1", "2"]}, {"options": ["1", "2", "3"]}]
    read = letters([["the answer is (C)", "the answer is (A)"], ["the answer is (C)", "no"]], docs)
    assert read == [["", "A"], ["C", ""]]
    assert share_right({"answer": "A"}, [["A", "", "B", "A"]]) == {"avg": 0.5}
