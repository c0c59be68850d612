r"""Plain LaTeX arithmetic, read into a small tree: what nine answers in ten are written in.

Math-Verify's parser takes tens of milliseconds an answer and builds objects that may evaluate themselves; this one
takes a fraction of one and builds tuples. It reads numbers, variables, `+ - * / ^ !`, fractions, roots, binomials,
absolute values, floors and the elementary functions, and raises `Unreadable` for anything else, which is then
Math-Verify's to read. A tree is `("number", Fraction)`, `("name", str)` or `(operation, *arguments)`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

Tree = tuple[Any, ...]

LONGEST = 1_500  # characters
DEEPEST = 60  # nested brackets
DIGITS = 1_000  # of one number; Python itself refuses to convert more than 4,300

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*|\.\d+)|(?P<command>\\[a-zA-Z]+|\\[{}])"
    r"|(?P<letter>[a-zA-Z]'*)|(?P<sign>[-+*/^_!()\[\]{}|,°]))"
)
_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar"
)
_ELLIPSIS = ("dots", "ldots", "cdots")  # a sum that leaves terms out is compared by those it shows
_NAMES = {rf"\{name}" for name in (*_GREEK.split(), *_ELLIPSIS)}
_ELEMENTARY = "sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh exp log ln lg"
_FUNCTIONS = {rf"\{name}": name for name in _ELEMENTARY.split()}
_BRACKETS = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", "|": "|", r"\lfloor": r"\rfloor", r"\lceil": r"\rceil"}
_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{4,}")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\overline\s*(?:\{(\d+)\}|(\d))")


class Unreadable(ValueError):
    """The text is no plain arithmetic (or more of it than is worth reading)."""


class TooLarge(ValueError):
    """The text is arithmetic that would take too much time or memory; nothing else should try either."""


@lru_cache(maxsize=4096)
def read(text: str) -> Tree:
    """The tree of a normalised formula.

    Raises:
        Unreadable: anything beyond plain arithmetic, or ambiguous (`1/2x`, `2 3`).
        TooLarge: over the limits of length, depth and digits.
    """
    if len(text) > LONGEST:
        raise TooLarge("too long")
    if _WORD.search(text):
        raise Unreadable("a word")
    text = _REPEATING.sub(_repeating_decimal, text)
    reader = _Reader(_tokens(text))
    tree = reader.sum()
    if reader.here < len(reader.tokens):
        raise Unreadable(f"unexpected {reader.peek()!r}")
    return tree


def _repeating_decimal(match: re.Match[str]) -> str:
    r"""`0.1\overline{6}` as a fraction: (16 - 1) / 90."""
    whole, fixed, period = match[1] or "0", match[2], match[3] or match[4]
    if len(whole + fixed + period) > DIGITS:
        raise TooLarge("too many digits")
    top = int(whole + fixed + period) - int(whole + fixed)
    return rf"\frac{{{top}}}{{{'9' * len(period) + '0' * len(fixed)}}}"


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    here, depth = 0, 0
    text = text.rstrip()
    while here < len(text):
        match = _TOKEN.match(text, here)
        if match is None:
            raise Unreadable(f"unexpected {text[here]!r}")
        token = match[match.lastgroup or 0]
        depth += (token in "([{") - (token in ")]}")
        if depth > DEEPEST or len(token) > DIGITS:
            raise TooLarge("too deep or too many digits")
        tokens.append(token)
        here = match.end()
    return tokens


class _Reader:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.here = 0
        self.bars = 0  # open |…|, inside which a bar closes

    def peek(self) -> str:
        return self.tokens[self.here] if self.here < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise Unreadable(f"expected {expected or 'something'}, found {token or 'the end'}")
        self.here += 1
        return token

    def sum(self) -> Tree:
        tree = self.product()
        while self.peek() in ("+", "-"):
            negative = self.take() == "-"
            right = self.product()
            tree = ("+", tree, ("neg", right) if negative else right)
        return tree

    def product(self) -> Tree:
        """A sign, and chains joined by dots, crosses or strokes."""
        if self.peek() in ("+", "-"):
            negative = self.take() == "-"
            operand = self.product()
            return ("neg", operand) if negative else operand
        tree = self.chain()
        while self.peek() in ("*", r"\cdot", r"\times", r"\ast", "/", r"\div"):
            operator = self.take()
            negative = self.peek() == "-" and bool(self.take())
            right = self.chain(after_slash=operator == "/")
            tree = ("/" if operator in ("/", r"\div") else "*", tree, ("neg", right) if negative else right)
        return tree

    def chain(self, after_slash: bool = False) -> Tree:
        r"""Factors side by side: `2x`, `3\sqrt{2}`, `\sin x \cos x`, and the mixed number `1\frac{1}{2}`."""
        start = self.here
        tree = self.power()
        if self.here == start + 1 and tree[0] == "number" and tree[1].denominator == 1:
            tree = self.mixed(tree)
        while self.starts_factor():
            if after_slash:
                raise Unreadable("1/2x may mean two things")
            if self.peek()[0] in "0123456789.":
                raise Unreadable("a number after a factor")
            tree = ("*", tree, self.power())
        return tree

    def mixed(self, whole: Tree) -> Tree:
        r"""`1\frac{1}{2}` is a sum."""
        if self.peek() == r"\frac":
            before = self.here
            part = self.power()
            if part[0] == "/" and all(side[0] == "number" for side in part[1:]) and self.peek() != "^":
                return ("+", whole, part)
            self.here = before
        return whole

    def starts_factor(self) -> bool:
        """Whether what comes next can be multiplied by what stands before it without a sign."""
        token = self.peek()
        if token == "|":
            return not self.bars
        return bool(token) and (
            token[0] in "0123456789."
            or token[0].isalpha()
            or token in ("(", "{", "[", r"\frac", r"\sqrt", r"\binom", r"\lfloor", r"\lceil", r"\pi")
            or token in _NAMES
            or token in _FUNCTIONS
        )

    def power(self) -> Tree:
        """An atom with the factorials, powers and degree marks behind it."""
        tree = self.atom()
        while self.peek() in ("!", "^", "°"):
            mark = self.take()
            if mark == "°":
                tree = ("*", tree, ("/", ("pi",), _number("180")))
            else:
                tree = ("!", tree) if mark == "!" else ("^", tree, self.argument(digits=True))
        return tree

    def argument(self, digits: bool = False) -> Tree:
        r"""What a command or `^` applies to: a group in braces, or a single digit, letter or command.

        Args:
            digits: whether to take all of a number: x^10 and \sqrt10 are meant as x^{10} and \sqrt{10}, \frac12 is not.
        """
        token = self.peek()
        if token == "{":
            return self.group()
        if token[:1].isdigit() and len(token) > 1 and not digits:
            self.tokens[self.here : self.here + 1] = [token[0], token[1:]]
        if token == "-":
            raise Unreadable("a sign without braces")
        return self.atom()

    def group(self) -> Tree:
        closing = _BRACKETS[self.take()]
        bars, self.bars = self.bars, int(closing == "|")
        tree = self.sum()
        self.take(closing)
        self.bars = bars
        return tree

    def atom(self) -> Tree:
        """A number, a name, a function, or anything in brackets."""
        token = self.peek()
        if token[:1].isdigit() or token[:1] == ".":
            return _number(self.take())
        if token in ("(", "{", "["):
            return self.group()
        if token in ("|", r"\lfloor", r"\lceil"):
            return ({"|": "abs", r"\lfloor": "floor", r"\lceil": "ceil"}[token], self.group())
        if token in (r"\frac", r"\binom"):
            self.take()
            return ("/" if token == r"\frac" else "binom", self.argument(), self.argument())
        if token == r"\sqrt":
            return self.root()
        if token in _FUNCTIONS:
            return self.function()
        return self.name()

    def root(self) -> Tree:
        self.take(r"\sqrt")
        index = self.group() if self.peek() == "[" else _number("2")
        return ("root", self.argument(digits=True), index)

    def function(self) -> Tree:
        """A named function with its base or exponent and its argument."""
        name = _FUNCTIONS[self.take()]
        base = exponent = None
        if self.peek() == "_":
            self.take()
            base = self.argument()
        if self.peek() == "^":
            self.take()
            exponent = self.argument()
            if exponent == ("neg", _number("1")):
                raise Unreadable("an inverse function")
        tree: Tree = (name, self.operand()) if base is None else ("log", self.operand(), base)
        return tree if exponent is None else ("^", tree, exponent)

    def operand(self) -> Tree:
        """What a function without braces applies to: one bracket, or the factors up to the next function."""
        if self.peek() in ("(", "{", "["):
            return self.power() if self.peek() != "(" else self.group()
        tree = self.power()
        while self.starts_factor() and self.peek() not in _FUNCTIONS and self.peek() not in ("(", "["):
            tree = ("*", tree, self.power())
        return tree

    def name(self) -> Tree:
        """A constant, or a variable with its subscript."""
        token = self.take()
        if token == r"\pi":
            return ("pi",)
        if token == r"\infty":
            return ("infinity",)
        if token in ("e", "i") and self.peek() != "_":
            return (token,)
        if not (token[0].isalpha() or token in _NAMES):
            raise Unreadable(f"unexpected {token!r}")
        if token in ("f", "g", "h") and self.peek() == "(":
            argument = self.tokens[self.here + 1 : self.here + 3]
            if len(argument) < 2 or argument[1] != ")":
                raise Unreadable("a function of the problem")
            self.here += 3
            return ("name", f"{token}({argument[0]})")
        return ("name", (r"\dots" if token[1:] in _ELLIPSIS else token) + self.subscript())

    def subscript(self) -> str:
        """The text of a subscript; empty if there is none."""
        if self.peek() != "_":
            return ""
        self.take()
        if self.peek() != "{":
            return "_" + self.take()
        stop = self.here
        while stop < len(self.tokens) and self.tokens[stop] != "}":
            stop += 1
        label = "".join(self.tokens[self.here + 1 : stop])
        if stop == len(self.tokens) or "{" in label:
            raise Unreadable("a subscript")
        self.here = stop + 1
        return "_" + label


def _number(digits: str) -> Tree:
    return ("number", Fraction(digits))
