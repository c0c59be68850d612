r"""Where the answer of a response without any box stands: a fallback, off in training and in evaluation.

Models that were never told to box their answers end otherwise: `A: 18`, `#### 18`, "The answer is (C)." Conventions:

* A response that opens a box, even an empty or unfinished one, has no other answer.
* What stands behind the last announcement ("answer is", "Answer:", "A:", "####") is the answer, up to the end of its
  line or sentence.
* Without an announcement the last number of the text is, unless braces are left open: that text was cut off.

A reward must not hang on such guesses ("it is not 2" ends with 2), so only `grade`, which judges texts of any origin,
uses them.
"""

from __future__ import annotations

import re

from datpo.evaluate.verify.boxed import LONGEST_RESPONSE

_BOX = re.compile(r"\\f?box(?:ed)?(?![a-zA-Z])")
_ANNOUNCEMENT = re.compile(r"####|\banswer\**[ \t]*(?:is\b|:)[ \t]*:?|^[ \t*]*A\**:", re.IGNORECASE | re.MULTILINE)
_END = re.compile(r"\n|[.!?](?=\s|$)")
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:/\d+)?|[-+]?\.\d+")


def find_unboxed(response: str) -> str | None:
    """The answer of a response that opens no box; None if it opens one, or neither announces nor numbers anything."""
    if _BOX.search(response):
        return None
    response = response[-LONGEST_RESPONSE:]
    *_, announcement = [None, *_ANNOUNCEMENT.finditer(response)]
    if announcement is not None:
        behind = response[announcement.end() :].lstrip(" \t*")
        return _END.split(behind, maxsplit=1)[0].strip(" \t*`") or None
    numbers = _NUMBER.findall(response)
    return numbers[-1] if numbers and response.count("{") == response.count("}") else None
