r"""One spelling for what is written in several ways, so that fewer answers need to be understood.

Every rule names the kind of answer it serves. A rule may change only the spelling: what decides between two values
(a radical, a sign, a bracket, a label, a unit) is left for `shapes` and `compare`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

LONGEST = 5_200  # characters; a longer "answer" is compared as it stands (and two of these fit a pipe, see `pool`)

_CHARACTERS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-",
    "×": r" \times ", "·": r" \cdot ", "⋅": r" \cdot ", "÷": "/", "∕": "/", "⁄": "/",
    "≤": r" \le ", "⩽": r" \le ", "≥": r" \ge ", "⩾": r" \ge ", "≠": r" \ne ", "≈": r" \approx ", "∼": r" \sim ",
    "∞": r" \infty ", "∪": r" \cup ", "∩": r" \cap ", "∈": r" \in ", "∅": r" \emptyset ", "±": r" \pm ", "∓": r" \mp ",
    "π": r" \pi ", "θ": r" \theta ", "α": r" \alpha ", "β": r" \beta ", "λ": r" \lambda ", "φ": r" \phi ",
    "°": r"^\circ ", "º": r"^\circ ", "′": "'", "’": "'", "“": '"', "”": '"',
    "€": r"\$", "£": r"\$", "¥": r"\$", "₹": r"\$", "∶": ":", "。": ".", "、": ", ", "√": r"\sqrt ", "∛": r"\sqrt[3]",
    "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ", "ℝ": r"\mathbb{R}", "∖": r"\setminus ",
    "\u200b": "", "\u2060": "", "\ufeff": "",
}  # fmt: skip

# One name for each command. Size and style, which mean nothing, have none.
_COMMANDS = {
    name: spelling
    for spelling, names in {
        "": "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr displaystyle textstyle limits "
        "nolimits large Large LARGE huge Huge small rm bf it underline boldsymbol bm ensuremath mathbin mathrel",
        r"\$": "pounds euro textdollar mathdollar",
        r"\text": "mathrm mathbf mathit mathsf mathtt textbf textit textrm textsf texttt textnormal textup mbox hbox "
        "emph operatorname",
        r"\frac": "dfrac tfrac cfrac sfrac nicefrac", r"\binom": "dbinom tbinom", r"\arctan": "arctg",
        r"\le": "leq leqq leqslant", r"\ge": "geq geqq geqslant", r"\ne": "neq", "<": "lt", ">": "gt",
        "(": "langle lparen", ")": "rangle rparen", "[": "lbrack", "]": "rbrack", r"\{": "lbrace", r"\}": "rbrace",
        "|": "mid vert lvert rvert", ":": "colon", r"\emptyset": "varnothing", r"\setminus": "backslash smallsetminus",
        " ": "quad qquad space thinspace", "°": "degree",
    }.items()
    for name in names.split()
}  # fmt: skip

_SPELLINGS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # Doubled backslashes of an escaped text: \\frac; the end of a matrix row is kept, which no such command follows.
    (r"\\\\(?=(?:[dt]?frac|sqrt|text|pi|cdot|times|left|right|begin|end|infty|cup|in)(?![a-zA-Z]))", r"\\"),
    # A key that comes in its box, or a box in a box.
    (r"\\(?:boxed|fbox)\s*(?=\{)", ""),
    # A system of equations with one brace before it.
    (r"\\left\s*\\\{\s*\\begin\{(array|aligned)\}(?:\{[^{}]*\})?(.*)\\end\{\1\}\s*\\right\s*\.",
     r"\\begin{cases}\2\\end{cases}"),
    # What is not seen: \left. \color{red} \phantom{0}.
    (r"\\left\s*\.|\\right\s*\.|\\(?:text)?color\s*\{[^{}]*\}|\\phantom ?(?:\{[^{}]*\}|\\?.)", ""),
    # Upright constants and functions: 3\mathrm{i}, 2\mathrm{\pi}, \operatorname{arctan}.
    (r"\\(?:mathrm|mathbf)\s*\{\s*(i|e|\\[a-zA-Z]+)\s*\}", r" \1 "),
    (r"\\(?:mathrm|operatorname)\s*\{\s*(sin|cos|tan|cot|csc|log|ln|exp|arc[a-z]{3})\s*\}", r"\\\1 "),
    # One name for each command, see above.
    (r"\\([a-zA-Z]+)", lambda match: _COMMANDS.get(match[1], match[0])),
    # Dollars and other marks of mathematics: \$5, $5$, \(5\), \[5\].
    (r"(?:\bUS)?\\?\$|(?<![a-zA-Z])(?:USD|EUR)(?![a-zA-Z])|(?<!\\)\\[()\[\]]", ""),
    # Quotes and emphasis round the whole; a line end or a lone backslash after it.
    (r"^([*\"`]{1,3})(.*)\1$", r"\2"),
    (r"\\+$", ""),
    # Powers as programs write them: x**2.
    (r"(?<=[\w)}])(?: \*\* |\*\*)(?=[\w({-])", "^"),
    # Thousands with a mark that can be nothing else: 1{,}234, 1,\!234 and 1\,234.
    (r"(?<=\d)\s*(?:\{ ?, ?\}|, ?\\!|\\,)\s*(?=\d{3}(?!\d))", ""),
    # Spaces: \, \; ~ and `\ `; the negative space \! is no space.
    (r"(?<!\\)\\!", ""),
    (r"(?<!\\)\\(?:[,;:> \n\t]|hspace\{[^{}]*\})|~", " "),
    # Operators without a command.
    (r"(?:\{|^)([^{}\\]*)\\choose(?![a-zA-Z])([^{}\\]*)(?:\}|$)", r"\\binom{\1}{\2}"),
    (r"<=", r"\\le "),
    (r">=", r"\\ge "),
    (r"!=", r"\\ne "),
    (r"-\s*(?=\\\{)", r"\\setminus "),
    (r"\\(tan|sin|cos)\s*\^\s*\{-1\}", r"\\arc\1 "),
    # Identically equal, but for congruences; a modulus is like a unit: 7 \pmod{11}.
    (r"\\equiv(?![a-zA-Z])(?!.*mod)", "="),
    (r" ?\(? ?\\p?b?mod(?![a-zA-Z]) ?(?:\{([^{}]*)\}|(\d+)) ?\)?", r"\\text{mod \1\2}"),
    # A sign or mark in braces or text of its own: {-}5, 4\text{:}30, 1\text{, }2; a text with nothing in it.
    (r"(?:\\text\s*)?\{\s*([-+=:,<>])\s*\}", r"\1"),
    (r"\\text\s*\{\s*\}", ""),
    # A text in a text: \mathbf{\color{blue}{12}}.
    (r"\\text\s*\{\s*(?:\\text\s*)?\{([^{}]*)\}\s*\}", r"\\text{\1}"),
    # A fraction of units: \frac{\text{m}}{\text{s}}.
    (r"\\frac\s*\{\s*\\text\s*\{([^{}]*)\}\s*\}\s*\{\s*\\text\s*\{([^{}]*)\}\s*\}", r"\\text{\1/\2}"),
    # What introduces an answer: \text{The answer is } 5.
    (r"^\\text\s*\{(?!\s*[A-Z]\s*:)[^{}]*(?: is|:|=)\s*\}", ""),
    # What a letter of the answer may be, said after it: f(x) = x \text{ for all } x; 2k\pi, k \in \mathbb{Z}.
    (r"\\text\s*\{\s*,?\s*for (?:all|every|any)(?![a-zA-Z])[^{}]*\}[^,]*", ""),
    (r"^((?:[^<>\\]|\\(?![lg]e(?![a-zA-Z])))+)(?:, ?\(?| \() ?[a-z] ?\\in ?\\mathbb ?\{?[ZNQR]\}?"
     r"(?:[\^_]\{?[+*>0\d]*\}?)? ?\)?$", r"\1"),
    # Repeating decimals: 0.\bar{3}, 0.\dot{3}.
    (r"(\.\d*)\\(?:bar|dot)\s*\{?(\d+)\}?", r"\1\\overline{\2}"),
    # Numbers as programs write them: 1.5e3, 2e-10; but 2e-1 is twice Euler's number, less one.
    (r"(?<![\w.\\])(\d+\.\d+|\d+\.?(?=E|e\d|e[-+]\d\d))[eE]\+?(-?\d+)(?![\w.])", r"\1\\times 10^{\2}"),
    # Large amounts in words: 5 million, 5\text{ million}.
    *(
        (rf"(?<=[\d}}]) ?(?:\\text\{{ ?)?{word}(?: ?\}}|(?![a-zA-Z]))", rf"\\times 10^{{{power}}}")
        for word, power in (("thousand", 3), ("million", 6), ("billion", 9))
    ),
    # Ratios in words: 2 \text{ to } 3.
    (r"(?<=\d) ?(?:\\text\{ ?to ?\}|to) ?(?=\d)", ":"),
    # Functions without a backslash: sqrt(2), pi.
    (r"(?<![\\a-zA-Z])(sqrt|pi|infty|sin|cos|tan|log|ln|arcsin|arccos|arctan)(?![a-zA-Z])", r"\\\1"),
    # Degrees: 45^{\circ}, 45\text{ degrees}, 45 degrees, 45^o, 20°C.
    (r"\^\s*\{\s*\\circ\s*\}|\^\s*\\circ(?![a-zA-Z])|\\text\{\s*degrees?\s*\}|"
     r"(?<=[\d} ])deg(?:rees?)?(?![a-zA-Z])|(?<=\d)\^(?:o(?![a-zA-Z])|\{o\})", "°"),
    (r"°\s*([CF])(?![a-zA-Z])", r"°\\text{\1}"),
    # Percent: 25\%, 25%, 25 percent.
    (r"\\?%|\\text\{\s*(?:%|\\%|percent)\s*\}|(?<=[\d} ])percent(?![a-zA-Z])", "%"),
    # A signed infinity at an end of an interval: +\infty.
    (r"(?<![\w})\]])\+\s*(?=\\infty)", ""),
    # All real numbers, the one set of numbers that is an interval.
    (r"\\mathbb\s*\{?\s*R\s*\}?(?![_^\w])|\\text\s*\{\s*(?i:all real numbers?|all reals|real numbers)\.?\s*\}",
     r"(-\\infty,\\infty)"),
    # Alignment around formulas: \begin{aligned} x &= 5 \end{aligned}.
    (r"\\(?:begin|end)\{(?:aligned|align\*?|gathered|split|equation\*?)\}", ""),
    # Lists joined by words: 1 \text{ and } 2, 1 or 2, "1, 2, and 3"; semicolons.
    (r" ?[,;]? ?(?:\\text\{\s*,?\s*(?:and|or)\s*\}|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z])|\\lor(?![a-zA-Z])|"
     r"\\vee(?![a-zA-Z]))\s*", ", "),
    (r";", ", "),
)  # fmt: skip
_RULES = tuple((re.compile(pattern), replacement) for pattern, replacement in _SPELLINGS)
_DIGITS = re.compile(r"-?\d+(?:\.\d+)?")
_SUBSCRIPTS = re.compile("[₀-₉]+")
_SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_MATRIX = re.compile(r"\\begin\{[a-zA-Z]*(?:matrix|array|cases)\}")
_NEXT_LINE = re.compile(r"\\\\(?=\s*&?\s*([=<>]|\\[lg]e\b|$)?)")


@lru_cache(maxsize=8192)
def normalise(answer: str) -> str:
    """The answer in one spelling: plain characters, one name per command, single spaces."""
    text = " ".join(answer.split())
    if _DIGITS.fullmatch(text):
        return text
    if not text.isascii():
        text = plain_characters(text)
    for pattern, replacement in _RULES:
        if "  " in text:  # a pattern with a free number of spaces takes quadratic time on thousands of them
            text = " ".join(text.split())
        text = pattern.sub(replacement, text)
    if "&" in text and not _MATRIX.search(text):
        text = _NEXT_LINE.sub(lambda match: " " if match[1] is not None else ", ", text).replace("&", "")
    return peel(" ".join(text.split()))


def plain_characters(text: str) -> str:
    """ASCII for the characters models and authors write instead: ½, １２, x², π, −, °."""
    text = _SUPERSCRIPTS.sub(lambda m: "^{" + unicodedata.normalize("NFKC", m.group()).replace("−", "-") + "}", text)
    text = _SUBSCRIPTS.sub(lambda m: "_{" + unicodedata.normalize("NFKC", m.group()) + "}", text)
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
