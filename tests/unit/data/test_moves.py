import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datpo.core.errors import InputError
from datpo.core.seeds import generator
from datpo.data.moves import LEVELS, Puzzle, draw_puzzle, make_problems, solution, wander

TEXT = "Start at 10. Reach 12 with 5 of: *3 +6 -5 -7 +4 -6."
PUZZLE = Puzzle(10, 12, 5, ("*3", "+6", "-5", "-7", "+4", "-6"))
WAY = ("+4", "-6", "*3", "-7", "-5")  # 14, 8, 24, 17, 12


def test_text_and_puzzle_are_the_same_thing():
    assert Puzzle.parse(TEXT) == PUZZLE
    assert PUZZLE.text() == TEXT


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("Start at 10.", "half a puzzle"),
        ("Start at 10. Reach 12 with 5 of: .", "no moves"),
        ("Start at 10. Reach 12 with 2 of: *3 +6 +6.", "a move twice"),
        ("Start at 10. Reach 12 with 3 of: *3 +6.", "more moves to use than offered"),
        ("Start at 10. Reach 12 with 0 of: *3 +6.", "no move to use"),
        ("Start at 10. Reach 12 with 1 of: *3  +6.", "an empty move"),
        ("Start at 10. Reach 12 with 1 of: *3 /6.", "no such move"),
        ("Start at 10. Reach 12 with 1 of: *3 6.", "a move without a sign"),
        ("Start at 40. Reach 12 with 1 of: *3 +6.", "start out of range"),
        ("Start at 10. Reach 40 with 1 of: *3 +6.", "target out of range"),
        ("Start at -1. Reach 12 with 1 of: *3 +6.", "a negative start"),
        ("Start at 10. Reach 12 with 1 of: *3 +6. And more.", "text behind"),
        ("Start at ١٠. Reach 12 with 1 of: *3 +6.", "digits of another script"),
    ],
)
def test_nonsense_is_refused(text, why):
    with pytest.raises(ValueError, match=r"."):
        Puzzle.parse(text)


def test_values_on_the_way():
    assert PUZZLE.values(WAY) == [14, 8, 24, 17, 12]
    with pytest.raises(ValueError, match="not a move"):
        PUZZLE.values(("+4", "__import__('os')"))


@pytest.mark.parametrize(
    ("sequence", "reaches", "why"),
    [
        (WAY, True, "the way it was made from"),
        (("-5", "-7", "+4", "-6", "*3"), False, "below 0 on the way: 5, -2"),
        (WAY[:4], False, "too few moves"),
        ((*WAY, "+6"), False, "too many moves"),
        (("+4", "-6", "*3", "-7", "-7"), False, "a move twice"),
        (("+4", "-6", "*3", "-9", "-3"), False, "moves that are not offered, though 12 is reached"),
        (("+4", "-6", "*3", "-5", "-7"), True, "another order, same end"),
        (("+4", "+6", "*3", "-7", "-5"), False, "over 39 on the way: 14, 20, 60"),
        (("-7", "*3", "+6", "+4", "-5"), False, "another end: 3, 9, 15, 19, 14"),
        ((), False, "nothing"),
        (("+4", "-6", "*3", "-7", " -5"), False, "not literally an offered move"),
        (("nonsense",) * 5, False, "no moves at all"),
    ],
)
def test_what_reaches_the_target(sequence, reaches, why):
    assert PUZZLE.reaches(sequence) is reaches, why


def test_the_bounds_belong_to_the_range():
    assert Puzzle(3, 39, 2, ("-3", "+9", "*3", "+4")).reaches(("+9", "*3")) is False  # 12, 36
    assert Puzzle(4, 39, 2, ("+9", "*3")).reaches(("+9", "*3"))  # 13, 39
    assert Puzzle(3, 0, 1, ("-3", "+9")).reaches(("-3",))


def test_a_worked_solution_ends_in_the_box():
    assert solution(PUZZLE, WAY) == (
        "From 10 +4 = 14.\n\nFrom 14 -6 = 8.\n\nFrom 8 *3 = 24.\n\nFrom 24 -7 = 17.\n\nFrom 17 -5 = 12.\n\n"
        r"So \boxed{ +4 -6 *3 -7 -5}."
    )


@given(st.integers(0, 10**6), st.sampled_from(sorted(LEVELS)))
def test_drawn_puzzles_have_their_level_and_a_solution(seed, level):
    rng = generator(seed)
    puzzle, sequence = draw_puzzle(level, rng)
    assert (len(puzzle.moves), puzzle.use) == LEVELS[level]
    assert 1 <= puzzle.start <= 20
    assert puzzle.reaches(sequence)
    assert Puzzle.parse(puzzle.text()) == puzzle
    aimless = wander(puzzle, rng)
    assert all(0 <= value <= 39 for value in puzzle.values(aimless))
    assert len(set(aimless)) == puzzle.use
    assert set(aimless) <= set(puzzle.moves)


def test_problems_are_distinct_spread_over_levels_and_repeatable():
    problems = make_problems(120, [2, 5, 8], 7, "train", "training")
    assert problems == make_problems(120, [2, 5, 8], 7, "train", "training")
    assert problems != make_problems(120, [2, 5, 8], 8, "train", "training")
    assert len({problem.id for problem in problems}) == 120
    assert len({Puzzle.parse(problem.problem).identity for problem in problems}) == 120
    assert [sum(problem.level == level for problem in problems) for level in (2, 5, 8)] == [40, 40, 40]
    for problem in problems:
        assert Puzzle.parse(problem.problem).reaches(problem.answer.split())
        assert re.fullmatch(r"([-+][2-9]|\*[23])( ([-+][2-9]|\*[23]))*", problem.answer)


def test_a_shorter_set_is_the_beginning_of_a_longer_one():
    assert make_problems(10, [1], 0, "train", "training") == make_problems(30, [1], 0, "train", "training")[:10]


def test_parts_share_no_puzzle_whatever_the_order_of_moves():
    parts = {
        part: {Puzzle.parse(problem.problem).identity for problem in make_problems(300, [1], 0, "same name", part)}
        for part in ("training", "validation", "benchmark")
    }
    assert not parts["training"] & parts["validation"]
    assert not parts["training"] & parts["benchmark"]
    assert not parts["validation"] & parts["benchmark"]
    assert PUZZLE.part == Puzzle(10, 12, 5, PUZZLE.moves[::-1]).part


@pytest.mark.parametrize("levels", [[], [9], [2, 0]])
def test_unknown_levels_are_refused(levels):
    with pytest.raises(InputError, match="levels of move puzzles are 1 to 8"):
        make_problems(3, levels, 0, "train", "training")
