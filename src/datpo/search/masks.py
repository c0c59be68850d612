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
    r"|(?P<fence>```)|(?<!`)(?P<code>`)(?![`\s])|(?P<drawing>\[asy\])"
    r"|(?P<double>\$\$)|(?P<dollar>\$)|(?P<display>\\\[)|(?P<inline>\\\()"
    r"|\\begin\{(?P<environment>[A-Za-z]{1,20}\*?)\}|\\[A-Za-z]{1,20}(?P<brace>\{)"
)
_CLOSERS = {
    "fence": ("```", DISPLAY),
    "drawing": ("[/asy]", DISPLAY),
    "double": ("$$", DISPLAY),
    "display": ("\\]", DISPLAY),
    "inline": ("\\)", INLINE),
}
_TICK_OR_LINE_END = re.compile(r"(?P<closing>(?<!\s)`(?!`))|`|\n")
_DOLLAR = re.compile(r"\\.|\$|\n[ \t]*\n", re.DOTALL)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_PROSE = re.compile(r"[.!?]\s+[A-Z][a-z]+\s")  # a sentence between two dollar signs: they are money
_CAPITAL_NEXT = re.compile(r"\s{1,20}[A-Z]")

_NEXT = r"(?=\s+[A-Z_]|\s*$)"
_STARTERS = (
    "A|All|Also|And|Are|As|Assuming|At|Because|Both|But|By|Calculate|Can|Compute|Consider|Determine|Does|Draw|Each|"
    "Finally|Find|First|For|From|Given|Hence|How|However|I|If|In|Is|It|Let|Next|Note|Now|Otherwise|Since|So|Suppose|"
    "That|The|Then|There|Therefore|These|They|This|Thus|To|Using|We|What|When|Where|Which|Why|With"
)
_REFERENCES = "alg|app|art|ch|cor|def|eq|eqs|ex|fig|figs|lem|no|nos|pp|p|prop|ref|refs|sec|tab|thm|vol"
_HEADINGS = (
    "Case|Claim|Corollary|Definition|Example|Exercise|Fact|Lemma|Method|Option|Part|Problem|Proposition|Question|"
    "Remark|Section|Step|Theorem"
)
_UNITS = "cm|cu|ft|gal|hr|hrs|in|kg|km|lb|lbs|mi|min|ml|mm|oz|pt|qt|sec|sq|yd"
_LABEL = r"(?:_{1,3}|[A-Za-z]|[ivxIVX]{2,5})"
_LATER_LABEL = r"(?:(?:_{1,2}|[A-Z]|[IVX]{2,4})\.\)?|\((?:_{1,2}|[A-Za-z]|[ivx]{2,4})\.\))"
_ITEM = r"(?=\s+\*{0,2}[A-Z_])(?!\s+(?:And|But|Hence|So|Therefore|Thus)\b)"  # not: What is 3 x 4? 12. So it is
_LABEL_ALONE = re.compile(rf"(?:(?:{_HEADINGS}) )?\w{{1,3}}\.")
_LABELLED = (
    "angle|answer|axis|base|box|case|center|centre|choice|circle|class|corner|edge|event|graph|group|letter|line|"
    "matrix|node|option|plane|point|ray|segment|set|side|square|team|triangle|type|vertex"
)
_ABBREVIATIONS = r"[Aa]pprox|ca|[Cc]f|Dr|[Ee]\.g|[Ii]\.e|Mr|Mrs|Ms|Prof|[Rr]esp|[Ss]\.t|[Vv]iz|[Vv]s|[Ww]\.r\.t"
_MONTHS = "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec"

# Each pattern is covered whole, in this order; what it looks at may have been covered by an earlier one.
_COVERED = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"(?<=:\s)1\.(?=\s+[A-Z])", 0),  # as follows: 1. Add
        (r"(?:(?<![\w.])\.)?\d+(?:[.,:]\d+)*", 0),  # numbers
        (r"(?<=[_)\]])!(?!\s+[A-Z]|\s*$|[\"'”’])", re.MULTILINE),  # 5! ways
        (r"(?<![A-Za-z])[A-Za-z]!(?!\s+[A-Z]|\s*$|[\"'”’])", re.MULTILINE),  # n! ways
        (r"!(?=[ \t]*[=·*×+\-/^<>≤≥,;:])|(?<![A-Za-z]{2})!(?=[ \t]*\))", 0),  # (n-1)! =, x != y, (n!)
        (r"(?<=[\w)])'(?=[\w(])|(?<=s)'(?=\s+[a-z])", 0),  # Ann's, f'(x), the girls' (PySBD: quotes)
        (r"(?<=[A-Za-z_)])'{1,3}(?=\s*[=+\-*/^,;:<>∈])", 0),  # f' = g'
        (r"(?<=_)\"(?=\s+(?:apart|by|deep|high|in|long|of|per|tall|thick|wide|x)\b)", 0),  # 6" long
        (r"(?<=\w )-{2,3}(?= \w)", 0),  # a dash -- like this (PySBD: quotes)
        (rf"^[ \t]*(?:[-*•#>][ \t]*){{0,8}}\(?{_LABEL}[.)]{{1,2}}(?=[ \t])", re.MULTILINE),  # 1. Add, (ii) Add
        (r"(?<=\s)(?:i[ivx]{1,3}|vi{1,3}|xi{1,2})\.(?=\s)", 0),  # … ii. second case
        (rf"(?:^\W{{0,8}}|(?<=[.!?]\s))(?:{_HEADINGS}) _+\.(?=\**[ \t])", re.MULTILINE),  # Step 2. Divide
        (rf"\b(?:{_REFERENCES})\.(?=\s*[_(\[$\\])", re.IGNORECASE),  # Eq. (3)
        (rf"\b(?:{_MONTHS})\.(?=\s+_)", 0),  # Jan. 5
        (rf"\b(?:{_ABBREVIATIONS})\.(?=\s)", 0),
        (rf"(?<=_ )(?:{_UNITS})\.(?=\s+[a-z(_])|\b(?:cu|sq)\.(?=\s+(?:{_UNITS})\b)", 0),  # 6 in. long, in sq. ft
        (rf"(?<=[.!?;]\s){_LATER_LABEL}{_ITEM}", 0),  # … sides. 2. Divide. III. Add
        (r"(?<![\w.])[b-hj-z](?=\.(?:\s|$))", 0),  # we find x. (PySBD: item x of a list)
        (rf"(?<![\w.])[A-Z](?=\.\s+(?:{_STARTERS})\b)", 0),  # through A. Then (PySBD: an initial)
        (rf"\b(?:{_LABELLED}) [A-Z](?=\.\s)", 0),  # at point A. Two bugs
        (r"(?<![\w.])[A-Z](?=\.\s+[A-Z]{1,3}\s+[a-z=<>∥⊥])", 0),  # from A to B. C is the midpoint
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
        last = "." if _ends_sentence(text, opener, end) else COVER
        parts.append(text[at : opener.start()] + COVER * (end - opener.start() - 1) + last)
        at = end
    return "".join(parts) + text[at:]


def _ends_sentence(text: str, opener: re.Match[str], end: int) -> bool:
    """Whether the mark at the end of a region ends a sentence: before a capital, and behind more than a label."""
    if not _CAPITAL_NEXT.match(text, end):
        return False
    inner = text[opener.end() : end].rstrip("}`" if opener.lastgroup in ("brace", "code") else "$)]\\ \t\n")
    label = opener.lastgroup == "brace" and _LABEL_ALONE.fullmatch(inner)
    return inner.endswith((".", "!", "?")) and not label


def _region_end(text: str, opener: re.Match[str], braces: dict[int, int]) -> int | None:
    """Where the region that opens here ends; None if it is no region."""
    kind, at = opener.lastgroup, opener.end()
    if kind is None:
        return None
    if kind == "dollar":
        return _dollar_end(text, at)
    if kind == "code":
        # Code ends on its line and not in a space: `these' words are `quoted'.
        tick = _TICK_OR_LINE_END.search(text, at, at + INLINE)
        return tick.end() if tick and tick["closing"] else None
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
