r"""What is set aside of a set, and why."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datpo.core.errors import InputError
from datpo.core.problem import Problem
from datpo.data.checks import REASONS, check_apart, normalised, sort_out, tally
from datpo.data.moves import make_problems

PUZZLE = "Start at 10. Reach 12 with 5 of: *3 +6 -5 -7 +4 -6."


def problem(id: str, text: str | None = None, key: str = "1") -> Problem:
    return Problem(id, f"What is {id}?" if text is None else text, key)


def reasons(*problems: Problem, domain: str = "math", drop: tuple[str, ...] = ()) -> dict[int, str]:
    """Reason by row; a good problem is added, so that something is left."""
    kept, aside = sort_out([*problems, problem("good one", "Good?", "7")], "x", domain, drop)
    assert len(kept) + len(aside) == len(problems) + 1
    assert all(each.reason in REASONS for each in aside)
    return {each.place: each.reason for each in aside}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("12", None),
        (r"\frac{1}{2}", None),
        (r"(-\infty, 2] \cup \{3\}", None),
        (r"\text{odd}", None),
        ("x^2 + 3x", None),
        ("", "empty_key"),
        ("n/a", "unreadable_key"),
        ("TBD", "unreadable_key"),
        ("NaN", "unreadable_key"),
        ("https://example.org/12", "unreadable_key"),
        ("12 (see above)", "unreadable_key"),
        (r"\text{see the solution below: } 12", "unreadable_key"),
        ("None", None),
        ("see the figure above", "unreadable_key"),
        (r"\frac{1}{2", "unreadable_key"),
        (r"\undefined{x}{y}", "unreadable_key"),
        ("9" * 6000, "unreadable_key"),
        ("(" * 200 + "x" + ")" * 200, "unreadable_key"),
    ],
)
def test_a_key_that_no_answer_could_equal_is_set_aside(key: str, reason: str | None) -> None:
    assert reasons(problem("a", key=key)) == ({1: reason} if reason else {})


def test_an_unequal_key_is_told_from_an_unreadable_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from datpo.data import checks

    checks._mathematical_fault.cache_clear()
    monkeypatch.setattr(checks, "same", lambda one, other: False)
    with pytest.raises(InputError, match="nothing is left of its 1 rows: 1 key_not_right"):
        sort_out([problem("a", key="not cached 5")], "x", "math")
    checks._mathematical_fault.cache_clear()


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        (PUZZLE, "+4 -6 *3 -7 -5", None),
        (PUZZLE, "+4 -6 *3 -7 +6", "key_not_right"),
        (PUZZLE, "12", "key_not_right"),
        (PUZZLE, "", "empty_key"),
        ("Start somewhere.", "+4", "unreadable_key"),
    ],
)
def test_the_key_of_a_puzzle_must_reach_its_target(text: str, key: str, reason: str | None) -> None:
    good = make_problems(1, [1], 0, "train", "training")
    _, aside = sort_out([Problem("a", text, key), *good], "x", "moves")
    assert [each.reason for each in aside] == ([reason] if reason else [])


def test_puzzles_made_here_are_all_kept() -> None:
    made = make_problems(60, [1, 4, 8], 3, "train", "training")
    assert sort_out(made, "train", "moves") == (made, [])


def test_texts_that_are_empty_or_hold_a_box_are_set_aside() -> None:
    found = reasons(
        problem("a", ""),
        problem("b", r"Let $\boxed{x}$ be x squared. Find $\fbox{12}$."),
        problem("c", r"Put the answer in \boxed{}. What is one?"),
        problem("d", r"What is \boxed 12"),
    )
    assert found == {1: "empty_text", 2: "box_in_text", 4: "box_in_text"}


def test_of_problems_that_are_one_the_first_is_kept_if_the_keys_agree() -> None:
    copies = [problem("a", "Find $x$.", "0.5"), problem("b", "find x", r"\frac12"), problem("a", "Else?", "1/2")]
    kept, aside = sort_out(copies, "x", "math")
    assert kept == copies[:1]
    assert [(each.place, each.reason, each.clash) for each in aside] == [
        (2, "repeated", copies[0]),
        (3, "repeated", copies[0]),
    ]


def test_all_are_set_aside_if_the_keys_of_one_problem_differ() -> None:
    one, other, third, apart = (
        problem("a", "Find x.", "2"),
        problem("b", "Find x", "3"),
        problem("c", "find x", "2"),
        problem("d"),
    )
    kept, aside = sort_out([one, other, third, apart], "x", "math")
    assert kept == [apart]
    assert [(each.problem, each.reason) for each in aside] == [
        (one, "repeated_other_key"),
        (other, "repeated_other_key"),
        (third, "repeated_other_key"),
    ]
    assert aside[0].row() == {
        "id": "a",
        "reason": "repeated_other_key",
        "key": "2",
        "clashes_with": "b",
        "other_key": "3",
        "row": 1,
        "source": "",
    }


def test_two_ways_through_one_puzzle_are_no_disagreement() -> None:
    ways = [Problem("a", PUZZLE, "+4 -6 *3 -7 -5"), Problem("b", PUZZLE, "+4 -6 *3 -5 -7")]
    kept, aside = sort_out(ways, "x", "moves")
    assert (kept, [each.reason for each in aside]) == (ways[:1], ["repeated"])


def test_a_copy_of_an_unusable_row_takes_its_place() -> None:
    found = reasons(problem("a", "Find x.", ""), problem("b", "find x", "3"))
    assert found == {1: "empty_key"}


def test_what_a_repeated_row_alone_holds_is_not_lost_with_it() -> None:
    """The second has the first's id and the third's text."""
    found = reasons(problem("a", "One?", "5"), problem("a", "Two?", "5"), problem("c", "two", "5"))
    assert found == {2: "repeated"}


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_a_contested_text_is_set_aside_in_any_order(order: tuple[int, ...]) -> None:
    rows = [problem("a", "One?", "5"), problem("a", "Two?", "5"), problem("c", "two", "6"), problem("c", "Three?", "6")]
    kept, aside = sort_out([rows[place] for place in order], "x", "math")
    assert {each.problem for each in kept} == {"One?", "Three?"}
    assert [each.reason for each in aside] == ["repeated_other_key"] * 2


def test_dropped_rows_are_listed_too_and_must_be_there() -> None:
    assert reasons(problem("a"), problem("b", key=""), drop=("a", "b")) == {1: "dropped", 2: "dropped"}
    with pytest.raises(InputError, match="'x': ids under `drop` that are not there: z"):
        sort_out([problem("a")], "x", "math", ["z"])


def test_a_set_of_which_nothing_is_left_is_refused_with_its_reasons() -> None:
    bad = [problem("a", key=""), problem("b", ""), problem("c", key="")]
    with pytest.raises(InputError, match="'x': nothing is left of its 3 rows: 1 empty_text, 2 empty_key"):
        sort_out(bad, "x", "math")


def test_a_tally_of_nothing() -> None:
    assert tally([]) == "none"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("pqr"), st.sampled_from("12")), max_size=7))
def test_what_is_kept_is_distinct_and_every_row_is_somewhere(drawn: list[tuple[str, str, str]]) -> None:
    problems = [Problem(id, f"{text}?", key) for id, text, key in drawn]
    kept, aside = sort_out([*problems, problem("good one", "Good?", "7")], "x", "math")
    assert len({each.id for each in kept}) == len({each.problem for each in kept}) == len(kept)
    assert len(kept) + len(aside) == len(problems) + 1
    again, none = sort_out(kept, "x", "math")
    assert (again, none) == (kept, [])


def test_what_two_sets_share_is_refused() -> None:
    train = [problem("c"), problem("d", "Find $x$.")]
    check_apart([problem("a"), problem("b")], "test", train)
    with pytest.raises(InputError, match=r"'test' shares problems with the training set: b, c;.*`drop`"):
        check_apart([problem("a"), problem("b", "find x"), problem("c", "else")], "test", train)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (r"\dfrac{1}{2} of $x$", r"\frac12 of x", True),
        (r"\left( a, b \right)", "(a,b)", True),
        ("It costs 1.5 dollars.", "It costs 15 dollars.", False),
        ("What is 2+3?", "What is 2-3?", False),
        (r"\leftarrow x", r"arrow x", False),
        ("Find A given a.", "Find a given A.", False),
        ("Find $AB$ given $a$", "find AB, given a.", True),
        ("A man has x apples. A dog?", "a man has $x$ apples; a dog", True),
        (r"Let \Delta be", r"Let \delta be", False),
        ("f'(2)", "f(2)", False),
        (r"Find $f^{\prime}(2)$.", "find f'(2)", True),
        (r"$\left(x\right)'$", "(x)", False),
        ("Ann's 'best' book", "Anns best book", True),
        ("What is 5!?", "What is 5?", False),
        ("What is $n!$?", "what is n", False),
        ("Hurry! Find x!", "hurry, find x!", True),
        (r"\frac{1}{23}", r"\frac{12}{3}", False),
        ("2^{1}2", "2^{12}", False),
        ("the ratio 1:2", "the ratio 12", False),
        ("the digits 1 2", "the digits 12", False),
        ("at (1, 2)", "at (1,2)", True),
        ("x − 1", "x - 1", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("find\u200b x\u200d", "find x", True),
        ("x²", "x^2", True),
        ("x²", "x2", False),
        ("It costs ½.", r"it costs $\frac{1}{2}$", True),
    ],
)
def test_normalised_text(one: str, other: str, same: bool) -> None:
    assert (normalised(one) == normalised(other)) is same
