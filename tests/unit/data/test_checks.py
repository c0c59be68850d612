r"""What is set aside of a set, and why."""

from __future__ import annotations

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
    )
    assert found == {1: "empty_text", 2: "box_in_text"}


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
        (third, "repeated"),
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
    found = reasons(problem("a", "One?", "5"), problem("a", "Two?", "5"), problem("c", "two", "6"))
    assert found == {2: "repeated"}


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
    ],
)
def test_normalised_text(one: str, other: str, same: bool) -> None:
    assert (normalised(one) == normalised(other)) is same
