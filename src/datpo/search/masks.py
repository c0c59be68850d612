r"""A text of the same length in which only the marks that may end a sentence are left standing.

PySBD knows prose, not mathematics: it cuts at the dot of `1.`, the mark of `5!`, inside formulas, and needs
seconds for some rows of numbers. So formulas, code, numbers and labels are covered by underscores first, one
for each character: positions stay what they were, and PySBD sees a plain word.

Every pattern here is linear in the length of the text (no repetition within a repetition without a
separator), and every search for a closing mark is bounded.
"""

from __future__ import annotations

import re

COVER = "_"
INLINE, DISPLAY = 1_000, 8_000  # longest inline formula and longest display or code block, in characters

_OPENER = re.compile(
    r"\\\\|\\\$"  # a line break and a dollar sign, not openers
    r"|(?P<fence>```)|(?P<double>\$\$)|(?P<dollar>\$)|(?P<display>\\\[)|(?P<inline>\\\()"
    r"|\\begin\{(?P<environment>[A-Za-z]{1,20}\*?)\}|\\[A-Za-z]{1,20}(?P<brace>\{)"
)
_CLOSERS = {
    "fence": ("```", DISPLAY),
    "double": ("$$", DISPLAY),
    "display": ("\\]", DISPLAY),
    "inline": ("\\)", INLINE),
}
_DOLLAR = re.compile(r"\\.|\$|\n[ \t]*\n", re.DOTALL)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_PROSE = re.compile(r"[.!?]\s+[A-Z][a-z]+\s")  # a sentence between two dollar signs: they are money

_NEXT = r"(?=\s+[A-Z_]|\s*$)"
_STARTERS = (
    "A|Also|And|Are|As|At|Because|But|By|Can|Consider|Does|Finally|First|For|From|Given|Hence|How|However|I|If|"
    "In|Is|It|Let|Next|Note|Now|Otherwise|Since|So|Suppose|That|The|Then|There|Therefore|These|They|This|Thus|To|"
    "Using|We|What|When|Where|Which|Why|With"
)
_REFERENCES = "alg|app|art|ch|cor|def|eq|eqs|ex|fig|figs|lem|no|nos|pp|p|prop|ref|refs|sec|tab|thm|vol"
_HEADINGS = "Case|Claim|Example|Lemma|Method|Option|Part|Problem|Step|Theorem"
_UNITS = "cu|ft|hr|hrs|in|lb|lbs|mi|min|oz|sec|sq|yd"
_LABEL = r"(?:_{1,3}|[A-Za-z]|[ivxIVX]{2,5})"

# Each pattern is covered whole, in this order; what it looks at may have been covered by an earlier one.
_COVERED = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"(?<=:\s)1\.(?=\s+[A-Z])", 0),  # as follows: 1. Add
        (r"(?:(?<![\w.])\.)?\d+(?:[.,:]\d+)*", 0),  # numbers
        (r"(?<=[_)\]])!(?!\s+[A-Z]|\s*$|[\"'”’])", re.MULTILINE),  # 5! ways
        (r"(?<![A-Za-z])[A-Za-z]!(?!\s+[A-Z]|\s*$|[\"'”’])", re.MULTILINE),  # n! ways
        (r"!(?=[ \t]*[=·*×+\-/^<>≤≥,;:)])", 0),  # (n-1)! =, x != y
        (rf"^[ \t]*(?:[-*•#>][ \t]*){{0,8}}\(?{_LABEL}[.)](?=[ \t])", re.MULTILINE),  # 1. Add, (ii) Add
        (r"(?<=\s)(?:i[ivx]{1,3}|vi{1,3}|xi{1,2})\.(?=\s)", 0),  # … ii. second case
        (rf"(?:^\W{{0,8}}|(?<=[.!?]\s))(?:{_HEADINGS}) _+\.(?=\**[ \t])", re.MULTILINE),  # Step 2. Divide
        (rf"\b(?:{_REFERENCES})\.(?=\s*[_(\[$\\])", re.IGNORECASE),  # Eq. (3)
        (r"\b(?:approx|ca|cf|Dr|e\.g|i\.e|Mr|Mrs|Ms|Prof|resp|s\.t|viz|vs|w\.r\.t)\.(?=\s)", 0),
        (rf"(?<=_ )(?:{_UNITS})\.(?=\s+[a-z(_])", 0),  # 6 in. long
        (r"(?<=[.!?;]\s)_{1,2}\.(?=\s+[A-Z_])", 0),  # … sides. 2. Divide
        (r"(?<![\w.])[b-hj-z](?=\.(?:\s|$))", 0),  # we find x. (PySBD: item x of a list)
        (rf"(?<![\w.])[A-Z](?=\.\s+(?:{_STARTERS})\b)", 0),  # through A. Then (PySBD: an initial)
        (r"[∯ȸȹ♨☝♬♭☉☇☈☄☏ƪ♟♝∮&✂⌬⎋]", 0),  # PySBD's own marks
    )
)
_DOTS = re.compile(rf"(?:\.{{2,}}|\.(?:[ \t]\.){{2,}}|…)(?P<end>{_NEXT})?", re.MULTILINE)
_MARKS = re.compile(r"[!?]{2,}")


def masked(text: str) -> str:
    """The text with formulas, code, numbers, labels and abbreviations covered by underscores, at the same length."""
    text = _cover_regions(text)
    text = _DOTS.sub(lambda m: COVER * (len(m[0]) - 1) + ("." if m["end"] is not None else COVER), text)
    text = _MARKS.sub(lambda m: "," * (len(m[0]) - 1) + m[0][-1], text)
    for pattern in _COVERED:
        text = pattern.sub(lambda m: COVER * len(m[0]), text)
    return text


def _cover_regions(text: str) -> str:
    """Cover formulas, code blocks and the braces of commands; the end of a sentence in a formula stays one."""
    parts: list[str] = []
    at = 0
    braces = _matching_braces(text)
    while opener := _OPENER.search(text, at):
        end = _region_end(text, opener, braces)
        if end is None:
            parts.append(text[at : opener.end()])
            at = opener.end()
            continue
        inner = text[opener.end() : end].rstrip("$)]\\ \t\n")
        stops = inner.endswith((".", "!", "?")) and re.match(r"\s+[A-Z]", text[end : end + 20])
        parts.append(text[at : opener.start()] + COVER * (end - opener.start() - 1) + ("." if stops else COVER))
        at = end
    return "".join(parts) + text[at:]


def _region_end(text: str, opener: re.Match[str], braces: dict[int, int]) -> int | None:
    """Where the region that opens here ends; None if it is no region."""
    kind, at = opener.lastgroup, opener.end()
    if kind is None:
        return None
    if kind == "dollar":
        return _dollar_end(text, at)
    if kind == "brace":
        end = braces.get(at - 1, -1) + 1
    elif kind == "environment":
        closer = f"\\end{{{opener['environment']}}}"
        end = text.find(closer, at, at + DISPLAY) + len(closer)
        return end if end >= at + len(closer) else None
    else:
        closer, longest = _CLOSERS[kind]
        end = text.find(closer, at, at + longest) + len(closer)
        if end < at + len(closer):
            return None
    if kind in ("brace", "inline") and (not at < end <= at + INLINE or _BLANK_LINE.search(text, at, end)):
        return None
    return end


def _dollar_end(text: str, at: int) -> int | None:
    """Where the inline formula that a dollar sign opens ends; None if the sign is money."""
    for closer in _DOLLAR.finditer(text, at, at + INLINE):
        if closer[0].startswith("\\"):
            continue
        money = closer[0] != "$" or text[closer.end() : closer.end() + 1].isdigit()
        return None if money or _PROSE.search(text, at, closer.start()) else closer.end()
    return None


def _matching_braces(text: str) -> dict[int, int]:
    """The position of the closing brace of each opening one; escaped braces do not count."""
    pairs: dict[int, int] = {}
    waiting: list[int] = []
    for brace in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        if brace[0] == "{":
            waiting.append(brace.start())
        elif brace[0] == "}" and waiting:
            pairs[waiting.pop()] = brace.start()
    return pairs
