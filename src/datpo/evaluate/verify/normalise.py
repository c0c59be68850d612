r"""One spelling for what is written in several ways, so that fewer answers need to be understood.

Every rule names the kind of answer it serves. A rule may change only the spelling: what decides between two values
(a radical, a sign, a bracket, a label, a unit) is left for `shapes` and `compare`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

LONGEST = 5_200  # characters; a longer "answer" is compared as it stands (and two of these fit a pipe, see `pool`)

_CHARACTERS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-",
    "×": r" \times ", "·": r" \cdot ", "⋅": r" \cdot ", "÷": "/", "∕": "/", "⁄": "/",
    "≤": r" \le ", "⩽": r" \le ", "≥": r" \ge ", "⩾": r" \ge ", "≠": r" \ne ", "≈": r" \approx ", "∼": r" \sim ",
    "∞": r" \infty ", "∪": r" \cup ", "∩": r" \cap ", "∈": r" \in ", "∅": r" \emptyset ", "±": r" \pm ", "∓": r" \mp ",
    "π": r" \pi ", "θ": r" \theta ", "α": r" \alpha ", "β": r" \beta ", "λ": r" \lambda ", "φ": r" \phi ",
    "°": r"^\circ ", "º": r"^\circ ", "′": "'", "’": "'", "“": '"', "”": '"',
    "€": r"\$", "£": r"\$", "¥": r"\$", "₹": r"\$",
}  # fmt: skip

_SPELLINGS: tuple[tuple[str, str], ...] = (
    # Doubled backslashes of an escaped text: \\frac; a matrix keeps its row ends, which no letter follows there.
    (r"\\\\(?=(?:frac|dfrac|tfrac|sqrt|text|pi|cdot|times|left|right|begin|end|infty|cup|in)\b)", r"\\"),
    # A key that comes in its box, or a box in a box.
    (r"\\(?:boxed|fbox)\s*(?=\{)", ""),
    # Size and style, which mean nothing: \left( \right) \big \displaystyle \limits.
    (r"\\left\s*\.|\\right\s*\.", ""),
    (r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits)(?![a-zA-Z])", ""),
    (r"\\phantom ?(?:\{[^{}]*\}|\\?.)", ""),
    # Dollars: \$5 and $5$.
    (r"\\?\$|\\(?:pounds|euro)(?![a-zA-Z])|(?<![a-zA-Z])(?:USD|EUR)(?![a-zA-Z])", ""),
    # Quotes and emphasis round the whole; a line end after it.
    (r"^([*\"`]{1,3})(.*)\1$", r"\2"),
    (r"(?:\\\\)+$", ""),
    # Thousands with a mark that can be nothing else: 1{,}234, 1,\!234 and 1\,234.
    (r"(?<=\d)\s*(?:\{ ?, ?\}|, ?\\!|\\,)\s*(?=\d{3}(?!\d))", ""),
    # Spaces: \, \; \quad ~ and `\ `; the negative space \! is no space.
    (r"(?<!\\)\\!", ""),
    (r"(?<!\\)\\(?:[,;:> \n\t]|q?quad(?![a-zA-Z])|hspace\{[^{}]*\}|(?:thin|med|thick)?space(?![a-zA-Z]))|~", " "),
    # One name for each operator.
    (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
    (r"\\[dt]binom(?![a-zA-Z])", r"\\binom"),
    (r"\\(?:leqslant|leqq|leq)(?![a-zA-Z])", r"\\le"),
    (r"\\(?:geqslant|geqq|geq)(?![a-zA-Z])", r"\\ge"),
    (r"<=", r"\\le "),
    (r">=", r"\\ge "),
    (r"!=|\\neq(?![a-zA-Z])", r"\\ne "),
    (r"\\lt(?![a-zA-Z])", "<"),
    (r"\\gt(?![a-zA-Z])", ">"),
    (r"\\(?:varnothing|O)(?![a-zA-Z])", r"\\emptyset"),
    (r"\\(?:langle|lparen)(?![a-zA-Z])", "("),
    (r"\\(?:rangle|rparen)(?![a-zA-Z])", ")"),
    (r"\\lbrack(?![a-zA-Z])", "["),
    (r"\\rbrack(?![a-zA-Z])", "]"),
    (r"\\(?:lbrace)(?![a-zA-Z])", r"\\{"),
    (r"\\(?:rbrace)(?![a-zA-Z])", r"\\}"),
    (r"\\(?:lvert|rvert|vert)(?![a-zA-Z])|\\\|", "|"),
    (r"\\mid(?![a-zA-Z])", "|"),
    (r"\\colon(?![a-zA-Z])", ":"),
    (r"\\sqcup(?![a-zA-Z])", r"\\cup"),
    (r"\\(?:backslash|smallsetminus)(?![a-zA-Z])|-\s*(?=\\\{)", r"\\setminus "),
    (r"\\tan\^\{-1\}|\\arctg(?![a-zA-Z])", r"\\arctan"),
    (r"\\sin\^\{-1\}", r"\\arcsin"),
    (r"\\cos\^\{-1\}", r"\\arccos"),
    # One name for each upright text: words, units, choices.
    (r"\\(?:mathrm|mathbf|mathit|mathsf|mathtt|textbf|textit|textrm|textsf|texttt|textnormal|textup|operatorname|"
     r"mbox|hbox|emph|rm|bf)\s*(?=\{)", r"\\text"),
    (r"\\(?:rm|bf|it)(?![a-zA-Z])\s*", ""),
    (r"\\text\s*\{\s*\}", ""),
    (r"\\(?:underline|boldsymbol|bm)(?![a-zA-Z])", ""),
    # What introduces an answer: \text{The answer is } 5.
    (r"^\\text\s*\{[^{}]*(?: is|:|=)\s*\}", ""),
    # Repeating decimals: 0.\bar{3}, 0.\dot{3}.
    (r"(\.\d*)\\(?:bar|dot)\s*\{?(\d+)\}?", r"\1\\overline{\2}"),
    # Numbers as programs write them: 1.5e3, 2e-10; but 2e-1 is twice Euler's number, less one.
    (r"(?<![\w.\\])(\d+\.?\d*)[eE](\d+|[-+]\d{2,})(?![\w.])", r"\1\\times 10^{\2}"),
    # Large amounts in words: 5 million, 5\text{ million}.
    *(
        (rf"(?<=[\d}}]) ?(?:\\text\{{ ?)?{word}(?: ?\}}|(?![a-zA-Z]))", rf"\\times 10^{{{power}}}")
        for word, power in (("thousand", 3), ("million", 6), ("billion", 9))
    ),
    # Ratios in words: 2 \text{ to } 3.
    (r"(?<=\d) ?(?:\\text\{ ?to ?\}|to) ?(?=\d)", ":"),
    # Functions without a backslash: sqrt(2), pi, infinity.
    (r"(?<![\\a-zA-Z])(sqrt|pi|infty|sin|cos|tan|log|ln|arcsin|arccos|arctan)(?![a-zA-Z])", r"\\\1"),
    (r"(?<![\\a-zA-Z])(?:infinity|inf|oo)(?![a-zA-Z])|\\infinity", r"\\infty "),
    (r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
    (r"√\s*\(([^()]*)\)", r"\\sqrt{\1}"),
    (r"√\s*(\d+|[a-zA-Z])", r"\\sqrt{\1}"),
    # Degrees: 45^{\circ}, 45\degree, 45\text{ degrees}, 45 degrees.
    (r"\^\s*\{\s*\\circ\s*\}|\^\s*\\circ(?![a-zA-Z])|\\degree(?![a-zA-Z])|\\text\{\s*degrees?\s*\}|"
     r"(?<=[\d} ])deg(?:rees?)?(?![a-zA-Z])", "°"),
    # Percent: 25\%, 25%, 25 percent.
    (r"\\?%|\\text\{\s*(?:%|\\%|percent)\s*\}|(?<=[\d} ])percent(?![a-zA-Z])", "%"),
    # A signed infinity at an end of an interval: +\infty.
    (r"(?<![\w})\]])\+\s*(?=\\infty)", ""),
    # All real numbers, the one set of numbers that is an interval.
    (r"\\mathbb\s*\{?\s*R\s*\}?(?![_^\w])", r"(-\\infty,\\infty)"),
    # Alignment around a single formula: \begin{aligned} x &= 5 \end{aligned}.
    (r"\\(?:begin|end)\{(?:aligned|align\*?|gathered|split|equation\*?)\}", ""),
    # Lists joined by words: 1 \text{ and } 2, 1 or 2, "1, 2, and 3"; semicolons.
    (r" ?[,;]? ?(?:\\text\{\s*,?\s*(?:and|or)\s*\}|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z])|\\lor(?![a-zA-Z])|"
     r"\\vee(?![a-zA-Z]))\s*", ", "),
    (r";", ","),
    # Numbers and single letters set as text: \text{12}, \text{1 and 2}, \text{A, C}.
    (r"^\\text ?\{((?:[^{}a-zA-Z]|(?<![a-zA-Z])[a-zA-Z](?![a-zA-Z]))*)\}$", r"\1"),
)  # fmt: skip
_RULES = tuple((re.compile(pattern), replacement) for pattern, replacement in _SPELLINGS)
_DIGITS = re.compile(r"-?\d+(?:\.\d+)?")
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_MATRIX = re.compile(r"\\begin\{[a-zA-Z]*(?:matrix|array|cases)\}")


@lru_cache(maxsize=8192)
def normalise(answer: str) -> str:
    """The answer in one spelling: plain characters, one name per command, single spaces."""
    text = " ".join(answer.split())
    if _DIGITS.fullmatch(text):
        return text
    if not text.isascii():
        text = _plain_characters(text)
    for pattern, replacement in _RULES:
        if "  " in text:  # a pattern with a free number of spaces takes quadratic time on thousands of them
            text = " ".join(text.split())
        text = pattern.sub(replacement, text)
    if "&" in text and not _MATRIX.search(text):
        text = text.replace("&", "").replace(r"\\", " ")
    return peel(" ".join(text.split()))


def _plain_characters(text: str) -> str:
    """ASCII for the characters models and authors write instead: ½, １２, x², π, −, °."""
    text = _SUPERSCRIPTS.sub(lambda m: "^{" + unicodedata.normalize("NFKC", m.group()).replace("−", "-") + "}", text)
    text = "".join(_CHARACTERS.get(character) or _fraction(character) for character in text)
    text = unicodedata.normalize("NFKC", text)
    return "".join(_CHARACTERS.get(character, character) for character in text)


def _fraction(character: str) -> str:
    """½ as a fraction (so that 1½ stays a mixed number); any other character as it is."""
    decomposed = unicodedata.decomposition(character)
    if not decomposed.startswith("<fraction>"):
        return character
    top, bottom = unicodedata.normalize("NFKC", character).split("⁄")
    return rf"\frac{{{top}}}{{{bottom}}}"


def peel(text: str) -> str:
    """The text without what only wraps it: spaces, a full stop or comma at its end, braces round the whole."""
    while True:
        before = text
        text = text.strip().rstrip(",").strip()
        if text.endswith(".") and not text.endswith(("..", "m.")):
            text = text[:-1]
        if text.startswith("{") and text.endswith("}"):
            # Peel all the layers that close at the very end in one go: there may be thousands.
            layers = _wrapping_braces(text)
            text = text[layers : len(text) - layers]
        if text == before:
            return text


def _wrapping_braces(text: str) -> int:
    """How many pairs of braces go round the whole text."""
    closes: dict[int, int] = {}
    opened: list[int] = []
    for index, character in enumerate(text):
        if index and text[index - 1] == "\\":
            continue
        if character == "{":
            opened.append(index)
        elif character == "}" and opened:
            closes[opened.pop()] = index
    layers = 0
    while closes.get(layers) == len(text) - 1 - layers:
        layers += 1
    return layers


@lru_cache(maxsize=8192)
def squeeze(text: str) -> str:
    """A normalised answer as a key for "written alike": no spaces but those between two letters or digits."""
    text = re.sub(r"(?<![\w])\s+|\s+(?![\w])", "", text)
    text = re.sub(r"(?<=[a-zA-Z}])\s+(?=\d)|(?<=\d)\s+(?=[a-zA-Z\\])", "", text)
    return re.sub(r"(?<=[_^])\{(\w)\}", r"\1", text)
