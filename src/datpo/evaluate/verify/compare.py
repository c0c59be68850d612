r"""Whether an answer says what the key says.

`quick` decides what needs no computing (written alike, plain numbers); `judge` decides the rest by shape, by value
and at last by Math-Verify. Both agree wherever both decide. `judge` can take long on hostile text and runs in a
worker (`pool`).
"""

from __future__ import annotations

import re

from datpo.evaluate.verify import arithmetic, numeric
from datpo.evaluate.verify.keys import is_no_key, is_readable
from datpo.evaluate.verify.labels import is_sum_in_numbers, labelled_value
from datpo.evaluate.verify.normalise import LONGEST, normalise, squeeze
from datpo.evaluate.verify.shapes import Bracketed, Listing, Matrix, Relation, Shape, Single, read, readings
from datpo.evaluate.verify.single import same_value
from datpo.evaluate.verify.values import plain_number, ungrouped

DEEPEST = 100  # nested brackets
WARM_UP = [(r"\frac{1}{2}", r"x \mapsto 5"), ("f(x)+1", "1+f(y)"), (r"\{x\}", r"\log_{2} a_1")]  # loads Math-Verify


def quick(gold: str, answer: str) -> str | None:
    """The verdict where no computing is needed, else None.

    Right if the two are written alike, after normalisation; right or wrong if both are plain numbers.
    """
    if is_no_key(gold):
        return "bad_key"
    if max(len(gold), len(answer)) > LONGEST:
        return "right" if gold.strip() == answer.strip() else "wrong"
    left, right = normalise(gold), normalise(answer)
    if squeeze(left) == squeeze(right):
        return "right"
    grouped = [ungrouped(left), ungrouped(right)]
    a, b = plain_number(grouped[0] or left), plain_number(grouped[1] or right)
    if a is None or b is None:
        return None
    if a == b:
        return "right"
    # Two numbers in groups of three may also be two lists: 123,456 and 456,123.
    return None if all(grouped) else "wrong"


def judge(gold: str, answer: str) -> str:
    """`right`, `wrong`, or `bad_key` if the key cannot be read and the answer is not written like it."""
    verdict = quick(gold, answer)
    if verdict is not None:
        return verdict
    left, right = normalise(gold), normalise(answer)
    if max(map(_depth, (left, right))) > DEEPEST:
        return "wrong"
    if any(same(a, b) for a in readings(left) for b in readings(right)):
        return "right"
    return "wrong" if is_readable(read(left)) else "bad_key"


def _depth(text: str) -> int:
    """How deep the brackets of a text are nested."""
    deepest = depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest


def same(gold: Shape, answer: Shape) -> bool:
    """Whether two shapes are one answer."""
    if isinstance(gold, Relation) or isinstance(answer, Relation):
        return _same_relation(gold, answer)
    if isinstance(gold, Listing) or isinstance(answer, Listing):
        return _same_listing(gold, answer)
    if isinstance(gold, Matrix) or isinstance(answer, Matrix):
        return _same_matrix(gold, answer)
    if isinstance(gold, Bracketed) and isinstance(answer, Bracketed):
        return _same_brackets(gold, answer) and _in_order(gold.items, answer.items)
    if isinstance(gold, Single) and isinstance(answer, Single):
        return same_value(gold.text, answer.text)
    return False


def _in_order(left: tuple[Shape, ...], right: tuple[Shape, ...]) -> bool:
    return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))


def _same_brackets(gold: Bracketed, answer: Bracketed) -> bool:
    """Open and closed ends differ, except at infinity; a bracket round three or more values is decoration."""
    if gold.variable and answer.variable and squeeze(gold.variable) != squeeze(answer.variable):
        return False
    if len(gold.items) != 2:
        return {gold.left + gold.right, answer.left + answer.right} <= {"()", "[]"}
    sides = ((gold.left, answer.left, gold.items[0]), (gold.right, answer.right, gold.items[1]))
    return all(a == b or (isinstance(end, Single) and end.text.endswith(r"\infty")) for a, b, end in sides)


def _same_listing(gold: Shape, answer: Shape) -> bool:
    """Lists and sets in any order, each value matched once; a tuple and a list without braces in order."""
    for one, other in ((gold, answer), (answer, gold)):
        if isinstance(one, Bracketed) and isinstance(other, Listing) and len(other.items) > 1:
            if other.braces or one.left != "(" or one.right != ")" or one.variable:
                return False
            return _in_order(gold.items, answer.items)  # type: ignore[union-attr]
    left = gold.items if isinstance(gold, Listing) else (gold,)
    right = answer.items if isinstance(answer, Listing) else (answer,)
    if len(left) != len(right):
        # A set, or a repeated root given once: how often a value stands does not count.
        as_sets = isinstance(gold, Single) or isinstance(answer, Single) or _is_set(gold) or _is_set(answer)
        return as_sets and _covers(left, right) and _covers(right, left)
    if _labels_decide_order(left, right) or _labels_decide_order(right, left):
        return _in_order(left, right)
    rest = list(right)
    for item in left:
        match = next((index for index, other in enumerate(rest) if same(item, other)), None)
        if match is None:
            return False
        del rest[match]
    return True


def _is_set(shape: Shape) -> bool:
    return isinstance(shape, Listing) and shape.braces


def _covers(some: tuple[Shape, ...], others: tuple[Shape, ...]) -> bool:
    return bool(some) and all(any(same(item, other) for other in others) for item in some)


def _labels_decide_order(labelled: tuple[Shape, ...], bare: tuple[Shape, ...]) -> bool:
    """`p=3, q=4` against `3, 4`: different labels, so the bare list must follow their order."""
    if not all(isinstance(item, Relation) and item.sign == "=" for item in labelled):
        return False
    labels = {re.sub(r"_.*", "", item.sides[0]) for item in labelled if isinstance(item, Relation)}
    return len(labels) > 1 and not any(isinstance(item, Relation) for item in bare)


def _same_matrix(gold: Shape, answer: Shape) -> bool:
    """Entry by entry; a single row or column is also a tuple."""
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        return len(gold.rows) == len(answer.rows) and all(map(_in_order, gold.rows, answer.rows))
    matrix, other = (gold, answer) if isinstance(gold, Matrix) else (answer, gold)
    assert isinstance(matrix, Matrix)
    entries = tuple(entry for row in matrix.rows for entry in row)
    is_line = len(matrix.rows) == 1 or all(len(row) == 1 for row in matrix.rows)
    return is_line and isinstance(other, Bracketed) and _in_order(entries, other.items)


def _same_relation(gold: Shape, answer: Shape) -> bool:
    """Two equations or inequalities; or a value against a labelled value, `5` against `x = 5`."""
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        if gold.sign != answer.sign:
            return False
        # (a, b, c) = (1, 1, 1) is a = b = c = 1.
        point = next((side for side in (gold, answer) if side.sides[0].startswith("(")), None)
        chain = answer if point is gold else gold
        if point is not None and len(chain.sides) > 2 and labelled_value(point) is not None:
            return same(read(point.sides[-1]), chain)
        return _same_sides(gold, answer)
    relation, other = (gold, answer) if isinstance(gold, Relation) else (answer, gold)
    assert isinstance(relation, Relation)
    if relation.sign != "=":
        return False
    value = labelled_value(relation)
    if value is None:
        return is_sum_in_numbers(relation.sides[0]) and all(same(read(side), other) for side in relation.sides)
    if isinstance(other, Bracketed) and len(other.items) == len(relation.sides) - 1:  # x = y = 1 is the point (1, 1)
        return all(same(read(value), item) for item in other.items)
    return same(read(value), other)


def _same_sides(gold: Relation, answer: Relation) -> bool:
    if len(gold.sides) == len(answer.sides) > 2:
        return all(same(read(a), read(b)) for a, b in zip(gold.sides, answer.sides, strict=True))
    left, right = (gold.sides[0], gold.sides[-1]), (answer.sides[0], answer.sides[-1])
    if gold.sign == "=" and squeeze(left[0]) == squeeze(right[0]):
        return same(read(left[1]), read(right[1]))
    if all(same(read(a), read(b)) for a, b in zip(left, right, strict=True)):
        return True
    swappable = gold.sign in ("=", r"\ne")
    if swappable and all(same(read(a), read(b)) for a, b in zip(left, right[::-1], strict=True)):
        return True
    try:
        trees = [("+", arithmetic.read(a), ("neg", arithmetic.read(b))) for a, b in (left, right)]
        return bool(numeric.proportional(trees[0], trees[1], positive=not swappable))
    except (arithmetic.Unreadable, arithmetic.TooLarge):
        return False
