"""A table of kinds tells what is wrong, where and under which key."""

import math

import pytest

from datpo.core.errors import InputError
from datpo.core.kinds import AMOUNT, NAME, OBJECT, SHARE, TEXT, check_kinds, list_of, map_of, one_of, or_null, whole


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (whole(), [0, 2**63 - 1], [-1, 2**63, 1.0, True, "1", None]),
        (whole(1, 3), [1, 3], [0, 4]),
        (one_of(1), [1], [True, 1.0, "1", [1]]),
        (one_of("a", "b"), ["a", "b"], ["c", None, ["a"]]),
        (or_null(whole()), [None, 0], [-1, ""]),
        (list_of(whole()), [[], [0, 1]], [[0, "1"], 0, None, {}]),
        (map_of(TEXT), [{}, {"a": ""}], [{"a": 1}, [], None]),
        (AMOUNT, [0, 1.5, 10**18], [-0.1, math.nan, math.inf, 10**400, True, "0", None]),
        (SHARE, [0, 1, 0.5], [-0.1, 1.1, math.nan, True]),
        (TEXT, ["", "é", "\ud800"], [1, None, []]),
        (NAME, ["a", "\U0001f600"], ["", "\ud800", 1]),
        (OBJECT, [{}], [[], None]),
    ],
)
def test_values_of_a_kind(kind, good, bad):
    assert all(kind.fits(value) for value in good)
    assert not any(kind.fits(value) for value in bad)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([], r"f: line 2: must be a JSON object, not \[\]"),
        ({}, "f: line 2: key 'n' is missing"),
        ({"n": 0}, "f: line 2: 'n' must be a whole number from 1 to 9, not 0"),
        ({"n": "x" * 500}, "f: line 2: 'n' must be .{1,130}…$"),
        ({"n": 1, "m": 5}, "f: line 2: 'm' must be 'a' or null, not 5"),
    ],
)
def test_what_is_wrong_is_told(row, message):
    check_kinds("f: line 2", {"n": 1, "other": []}, {"n": whole(1, 9)}, {"m": or_null(one_of("a"))})
    with pytest.raises(InputError, match=message):
        check_kinds("f: line 2", row, {"n": whole(1, 9)}, {"m": or_null(one_of("a"))})
