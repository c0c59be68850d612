import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datpo.search import segment
from datpo.search.masks import masked
from datpo.search.segment import offsets_of, sentences, token_groups


def split(text):
    return [text[start:stop] for start, stop in sentences(text)]


# What a reader of mathematics would call the sentences; each entry is one text.
EXPECTED = [
    # money or formula
    ["It costs $5. ", "Then he pays $10. ", "So the total is $15."],
    ["Cost: \\$5. ", "Then \\$6. ", "Done."],
    ["We get $x=2.$ ", "Then $y=3.$ and so on. ", "$z=1$. ", "$w=2$."],
    # formulas stay whole
    ["\\(x = 1.\\) ", "Then \\(y = 2\\). ", "And \\[z\\]. ", "Ok."],
    ["\\begin{align*}\nx &= 1. \\\\\ny &= 2.\n\\end{align*}\n", "Thus x. ", "So y."],
    ["Text with \\text{Hello. World is big. } inside. ", "Done."],
    ["See $$a.\\;B$$ and \\[\n1. 2.\n\\]\n", "Next."],
    ["The cost is \\(5. ", "It never closes."],
    # labels belong to what they label
    ["1) Add the sides. ", "2) Divide by 4. ", "3) Box it."],
    ["We do: 1. Add the sides. ", "2. Divide by 4. ", "Done."],
    ["1. 5 apples. ", "2. 6 pears."],
    ["a. first case\n", "b. second case"],
    ["**Step 1.** We add. ", "**Step 2:** We multiply. ", "Thus, **x = 2.** ", "Done."],
    ["Step 1. Add the numbers. ", "Step 2. Divide."],
    ["1.) Add it. ", "2.) Halve it. ", "(iii.) Box it."],
    ["It is one of these. ", "A. It grows. ", "B. It falls. ", "C. Neither."],
    ["It has parts. ", "I. Start. ", "II. Middle. ", "III. End."],
    ["1. **Plan.** ", "We add. ", "2. **Do.** ", "We add."],
    ["Definition 2.1. A group is a set. ", "Corollary 3. It is."],
    ["\\textbf{Step 2.} Then we go. ", "\\textit{A hint.} ", "Use it."],
    ["Cases:\n  ", "1. One is odd. ", "Two is not.\n\t", "2. Done."],
    # numbers and letters that end a sentence are no labels
    ["x = 1. ", "Then y = 2. ", "So z = 3."],
    ["Then we find x. ", "Then y. ", "So z."],
    ["Let f: A -> B. ", "Is it onto? ", "Yes! ", "It is."],
    ["By Theorem 1. ", "Then we go."],
    ["What is 3 x 4? ", "12. ", "So it is. ", "Thus 13."],
    ["They meet at point P. ", "Two bugs start. ", "It is in set A. ", "Each is."],
    ["We go from A to B. ", "C is the midpoint. ", "It lies on AB. ", "BC = 2."],
    # abbreviations, units, initials
    ["Dr. Smith has 3 apples. ", "Mr. Jones has 4. ", "They share."],
    ["The U.S. has 50 states. ", "We use e.g. this one, i.e. that."],
    ["It is 6 in. long. ", "Then 5 cm. ", "Done."],
    ["No. ", "That is wrong. ", "No. 5 is right. ", "Yes."],
    ["AB = 5 cm. and BC = 2 km. long. ", "It has 3 sq. ft. of floor. ", "Done."],
    ["See Jan. 5. ", "On Feb. 3 it rained. ", "It was in Jan. ", "Then it froze."],
    ["Cf. Prop. 5 and Sec. 2. ", "W.r.t. x it is flat, cf. Thm. 2. ", "Done."],
    ["At 9 a.m. he left. ", "He lives in the U.S. ", "He met J. F. Kennedy. ", "It is 5 p.m. ", "We wait."],
    # factorials and exclamations
    ["Is it 5!? ", "No! ", "It is 4! ways. ", "There are n! ways and (n-1)! = 6. ", "Done."],
    ["x != 3. ", "So y = 4."],
    # dots
    ["Rolling... then ... stop. ", "He waits... ", "Then goes…"],
    ["and so on, 1, 2, ..., n. ", "Then stop"],
    # apostrophes, primes, inches and dashes are no quotation marks
    ['Her hair is 24" long. ', 'She cuts 2" of it. ', "It's Marco's. ", "The girls' bags are Ann's. ", "Done."],
    ["On the way Marco ' dad ate 3. ", "Marco's are 36. ", "How many are his dad's?"],
    ["Let f'(x) = 2x. ", "Then f'' = 2. ", "So g' = h'. ", "Then stop."],
    ["We stay on the grid -- no cutting. ", "Then -- at last -- we stop. ", "Done."],
    # code and drawings
    ["The output is `Hi. There.` as expected. ", "Call `f(x). g(y)`. ", "It works."],
    ["Run `x.` ", "Then `y`. ", "We say `this' and `that.' ", "So `a` is code. ", "A `tick is not. ", "Done."],
    ["Look.\n", '[asy]\ndraw(A--B); // Yes. No.\n\nlabel("B. C");\n[/asy]\n', "[asy] has no end. ", "Done."],
    # quotations and brackets
    ["It holds. ", "(See above.) ", "[Hint: use 2.] ", "(It is easy!)  ", "We go on, as (Smith et al.) Showed."],
    ["Use primes (2, 3, etc.) We go. ", "(Here.)  ", "$x$ is it."],
    ['"No way!" ', '"Really?" ', "He left. ", "She asks, ``Are we there?'' ", "He nods."],
    ['"Why?" she asked. ', "(This is fine.) ", "Next."],
    ["「你好。」", "他说。", "我们走！", "好吗？", "是。"],
    # lines
    ["<think>\n", "Okay. ", "Let me see.\n", "</think>\n", "The answer is \\boxed{5}."],
    ["- First item. ", "It is good.\n", "- Second item.\n", "* Third. ", "Yes"],
    ["so the answer is 12.\n\n\n   \n", "#### 12"],
    ["Above.\n---\n\n", "Below."],
    ["One.\r", "Two.\r\n"],
]


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected[0][:20])
def test_sentences(expected):
    assert split("".join(expected)) == expected


@pytest.mark.parametrize("text", [" ", "\n\n", "...", "$", "\\", "x", " x", "-\n-\n-", "\u2028", "\ufffd"])
def test_small_texts_are_one_sentence(text):
    assert split(text) == [text]


def test_leading_space_belongs_to_the_first_sentence():
    assert split("\n\n  Hello. Bye.") == ["\n\n  Hello. ", "Bye."]


HOSTILE = st.lists(
    st.sampled_from(
        [*"..!?()[]{}$\\\"'`-*_,;: \n\r\taxA1", "e.g. ", "ii. ", "(a) ", "\\[", "\\]", "\\(", "\\)", "\\begin{a}",
         "\\end{a}", "\\f{", "```", "$$", "。", "“", "”", "é", "…", ". B", "U.S.", "No. ", "[1 2 3 ", "∯", "ȸ", "&ᓴ&",
         "[asy]", "[/asy]", "`x", "x`", "''", ".) ", "a'", '1" by', " -- ", "Jan. 3", "C is ", "II. ", "\n  1. ",
         "\u2028", "\x85", "\u3000", "\u200b", "🤖", "１．", "٣."]
    )
).map("".join)  # fmt: skip


def check_tiling(text):
    spans = sentences(text)
    assert "".join(text[start:stop] for start, stop in spans) == text
    assert all(start < stop for start, stop in spans)
    assert all(first[1] == second[0] for first, second in pairwise(spans))
    assert len(masked(text)) == len(text)
    for _, stop in spans[:-1]:  # a sentence starts with its first visible character
        assert not text[stop].isspace(), text[stop - 10 : stop + 10]


@settings(max_examples=300, deadline=None)
@given(HOSTILE | st.text())
def test_any_text_is_tiled(text):
    check_tiling(text)


@settings(max_examples=25, deadline=None)
@given(HOSTILE.filter(len) | st.text(min_size=1))
def test_long_hostile_texts_stay_quick(pattern):
    text = (pattern * (24_000 // len(pattern) + 1))[:24_000]
    began = time.perf_counter()
    check_tiling(text)
    assert time.perf_counter() - began < 10  # about 0.8 s at most on a quiet machine


def test_time_grows_no_faster_than_the_text():
    rng = np.random.default_rng(0)
    words = ["we", "add", "the", "two", "sides", "of", "it.", "So", "Then", "Dr.", "e.g.", "(yes)", "3.5", "$x$."]

    def seconds(length):
        text = " ".join(rng.choice(words, length))
        segment._starts.cache_clear()
        began = time.perf_counter()
        check_tiling(text)
        return time.perf_counter() - began

    seconds(500)
    assert seconds(40_000) < 3 * 8 * seconds(5_000)


def test_a_library_failure_leaves_the_line_whole(monkeypatch):
    def fail(self):
        raise IndexError("string index out of range")

    monkeypatch.setattr(segment.Processor, "process", fail)
    segment._starts.cache_clear()
    assert split("One two. Three four.\nFive.") == ["One two. Three four.\n", "Five."]
    segment._starts.cache_clear()


# Tokens


def byte_tokens(pieces):
    """Ids 0, 1, … for the given byte strings, and their decoder."""
    return list(range(len(pieces))), lambda ids: b"".join(pieces[i] for i in ids).decode(errors="replace")


def spans_by_bytes(pieces):
    """The characters each token has a byte of, read off the byte positions."""
    text = b"".join(pieces).decode()
    character_of = [index for index, character in enumerate(text) for _ in character.encode()]
    spans, at = [], 0
    for piece in pieces:
        spans.append((character_of[at], character_of[at + len(piece) - 1] + 1))
        at += len(piece)
    return spans


def test_the_space_before_a_word_goes_with_the_word():
    ids, decode = byte_tokens([b"One", b".", b" Two", b".", b"\n\n", b"Three", b" ", b"4"])
    groups = token_groups(decode(ids), offsets_of(decode, ids))
    assert groups.tolist() == [0, 0, 1, 1, 1, 2, 2, 2]


def test_a_token_over_two_sentences_belongs_to_the_first():
    assert token_groups("A b. C d.", [(0, 1), (1, 6), (6, 8), (8, 9)]).tolist() == [0, 0, 1, 1]


def test_bytes_of_one_character_share_its_span():
    ids, decode = byte_tokens(["π".encode()[:1], "π".encode()[1:] + b" ", "😀".encode()[:3], "😀".encode()[3:], b"!"])
    assert offsets_of(decode, ids) == [(0, 1), (0, 2), (2, 3), (2, 3), (3, 4)]


def test_characters_that_never_become_whole():
    ids, decode = byte_tokens([b"a", b"\xe2", b"b", b"\xff", b"\xe2", b"\x82"])
    spans = offsets_of(decode, ids)
    assert decode(ids) == "a\ufffdb\ufffd\ufffd"
    assert spans[:4] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert [stop for _, stop in spans[4:]] == [5, 5]


def test_no_text_and_no_tokens():
    ids, decode = byte_tokens([b"", b""])
    assert offsets_of(decode, ids) == [(0, 0), (0, 0)]
    assert token_groups("", [(0, 0), (0, 0)]).tolist() == [0, 0]
    assert offsets_of(decode, []) == []
    assert token_groups("", []).tolist() == []


def test_an_end_token_without_text_belongs_to_the_last_sentence():
    assert token_groups("A b. C d.", [(0, 4), (4, 9), (9, 9)]).tolist() == [0, 1, 1]


@pytest.mark.parametrize("offsets", [[(0, 3), (2, 20)], [(3, 4), (0, 3)], [(3, 2)]])
def test_offsets_of_another_text(offsets):
    with pytest.raises(ValueError, match="token"):
        token_groups("A b.", offsets)


def cut(data, cuts):
    borders = [0, *sorted({c % len(data) for c in cuts} - {0}), len(data)]
    return [data[a:b] for a, b in pairwise(borders)]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab. \nπ≈é😀。", min_size=1), st.lists(st.integers(0, 10_000), max_size=200))
def test_offsets_are_those_of_the_bytes(text, cuts):
    pieces = cut(text.encode(), cuts)
    ids, decode = byte_tokens(pieces)
    assert offsets_of(decode, ids) == spans_by_bytes(pieces)


@settings(max_examples=100, deadline=None)
@given(HOSTILE.filter(len), st.lists(st.integers(0, 10_000), max_size=200))
def test_every_token_stands_in_one_sentence_in_order(text, cuts):
    pieces = cut(text.encode(), cuts)
    ids, decode = byte_tokens(pieces)
    groups = token_groups(decode(ids), offsets_of(decode, ids))
    assert len(groups) == len(ids)
    assert (np.diff(groups) >= 0).all()
    assert set(groups) <= set(range(len(sentences(decode(ids)))))


def test_long_responses_decode_a_window_at_a_time():
    rng = np.random.default_rng(0)
    vocabulary = ["π".encode()[:1], "π".encode()[1:], b" the", b" sum", b".", b" So", b"\n", b" 12", b"a", b"  "]
    order = []
    for index in rng.integers(1, len(vocabulary), 2_000).tolist():
        order += [0, 1] if index == 1 else [index]
    pieces = [vocabulary[index] for index in order]
    ids, decode = byte_tokens(pieces)
    decoded = 0

    def counting(some):
        nonlocal decoded
        decoded += len(some)
        return decode(some)

    assert offsets_of(counting, ids) == spans_by_bytes(pieces)
    assert decoded < 60 * len(ids)


def test_a_decoder_that_drops_the_first_space():
    rng = np.random.default_rng(1)
    vocabulary = [" the", " sum", ".", " So", "a", " 3"]
    pieces = [vocabulary[index] for index in rng.integers(0, len(vocabulary), 500)]
    spans = offsets_of(lambda ids: "".join(pieces[i] for i in ids).removeprefix(" "), range(len(pieces)))
    dropped = pieces[0].startswith(" ")
    ends = np.cumsum([len(piece) for piece in pieces]) - dropped
    assert [stop for _, stop in spans] == ends.tolist()
    assert [start for start, _ in spans] == [0, *ends[:-1].tolist()]


def test_offsets_are_those_of_a_byte_level_tokenizer():
    tokenizers = pytest.importorskip("tokenizers")
    text = "So the sum of 3.5 and π is ≈ 6.64. Then we add 12 and 😀. Thus $x = 2$.\n\nDone."
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=270, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([text], trainer)
    encoded = tokenizer.encode(text)
    assert len(encoded.ids) > 2 * segment.WINDOW
    assert offsets_of(tokenizer.decode, encoded.ids) == encoded.offsets
