import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import branch

from datpo.search.signals import closing, paragraph_numbers, sentence_numbers, step_numbers

END = "<end>"


def spoken(pieces, finish="length"):
    """A branch whose tokens are the given pieces of text or bytes, one id for each different one, and its decoder."""
    pieces = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    vocabulary = list(dict.fromkeys(pieces))

    def decode(tokens):
        said = [vocabulary[token] for token in tokens]
        return b"".join(piece for piece in said if piece != END.encode()).decode(errors="replace")

    return branch(None, 0, 0, tokens=[vocabulary.index(piece) for piece in pieces], finish=finish), decode


PI = "π".encode()


@pytest.mark.parametrize(
    ("pieces", "steps"),
    [
        # the separator belongs to the step it ends, whatever else its token holds
        (["First", ".\n\n", "Then", " x", "\n\n", "So"], [0, 0, 1, 1, 1, 2]),
        (["First", ".\n\nThen", " x", ".\n\n"], [0, 0, 1, 1]),
        (["a", "\n\n\n", "b"], [0, 0, 1]),
        (["one", " step", "\n\n"], [0, 0, 0]),
        # single line breaks end no step where there is a blank line
        (["a", "\n", "b", "\n\n", "c", "\n", "d"], [0, 0, 0, 0, 1, 1, 1]),
        # a blank line spread over tokens ends with the one that completes it
        (["a", "\n", "\n", "b"], [0, 0, 0, 1]),
        (["a.\n", "\nb", "c"], [0, 0, 1]),
        (["a", "\n", "\n\n", "b"], [0, 0, 0, 1]),
        (["a", "\n", " ", "\n", "b", "\n\n", "c"], [0, 0, 0, 0, 0, 0, 1]),
        # a line break that a blank line holds is not counted again, but the next two make one of their own
        (["a", "\n\n", "\n", "b", "\n", "c"], [0, 0, 1, 1, 1, 1]),
        (["a", "\n\n", "\n", "\n", "b"], [0, 0, 1, 1, 2]),
        (["a", "\n\n", "\n\n", "b"], [0, 0, 1, 2]),
        (["a", "\n\nb\n", "\n", "c"], [0, 0, 1, 2]),
        # without a blank line: lines; without those: tokens
        (["a", "\n", "b", " c", ".\n", "d"], [0, 0, 1, 1, 1, 2]),
        (["a", " b", " c"], [0, 1, 2]),
        (["a"], [0]),
        # a character of two tokens: both hold it, and it does not come between line breaks
        ([PI[:1], PI[1:], "\n\n", "b", PI[:1], PI[1:] + b"\n\n", "c"], [0, 0, 0, 1, 1, 1, 2]),
        (["a\n", PI[:1], PI[1:] + b"\n", "\n", "c"], [0, 0, 0, 0, 1]),
        ([PI[:1], PI[1:]], [0, 1]),
        # a token without text in the middle of a blank line
        (["a", "\n", END, "\n", "b"], [0, 0, 0, 0, 1]),
    ],
)
def test_steps(pieces, steps):
    made, decode = spoken(pieces)
    assert step_numbers(made, decode).tolist() == steps
    made, decode = spoken([*pieces, END], "stop")
    assert step_numbers(made, decode).tolist() == [*steps, -1]


@pytest.mark.parametrize(
    ("pieces", "paragraphs"),
    [
        (["a", " b", ".\n", "\nc", "\n\n", "d"], [0, 0, 0, 0, 1, 2]),
        (["a", "\n", "b", " c"], [0, 0, 0, 0]),  # a line break is none, nor is a token
        (["a"], [0]),
    ],
)
def test_paragraphs(pieces, paragraphs):
    made, decode = spoken([*pieces, END], "stop")
    assert paragraph_numbers(made, decode).tolist() == [*paragraphs, -1]


@pytest.mark.parametrize("numbers", [step_numbers, paragraph_numbers, sentence_numbers])
def test_an_end_token_alone_is_in_no_step_paragraph_or_sentence(numbers):
    made, decode = spoken([END], "stop")
    assert numbers(made, decode).tolist() == [-1]


def test_what_an_end_token_would_spell_separates_nothing():
    made, decode = spoken(["a", "b", "\n\n"], "stop")
    assert step_numbers(made, decode).tolist() == [0, 1, -1]


@given(st.lists(st.sampled_from(["a", "\n", "\n\n", ".\n\n", "b\n", "\nc", PI[:1], PI[1:], END]), min_size=1))
def test_steps_are_counted_one_by_one_and_end_with_every_token_that_holds_a_blank_line(pieces):
    made, decode = spoken(pieces)
    step_T = step_numbers(made, decode)
    assert step_T.dtype == float
    assert step_T[0] == 0
    assert set(np.diff(step_T)) <= {0, 1}
    own = [decode([token]) for token in made.tokens]
    assert all(step_T[t + 1] > step_T[t] for t in range(len(own) - 1) if "\n\n" in own[t])


@pytest.mark.parametrize(
    ("pieces", "closed"),
    [
        (["So", " the", " answer", " is", " 4"], [0, 0, 0, 1, 1]),
        (["In", " Conclusion", ":", " x"], [0, 0, 1, 1]),
        (["ANSWER", "s", " answer", "!"], [0, 1, 1, 1]),  # behind the first one
        (["#answers=", "4"], [0, 1]),  # anywhere in the token
        (["x", " =", " 4"], [0, 0, 0]),
        (["the", " ans", "wer", " is"], [0, 0, 0, 0]),  # a cut word is not seen
        (["x", " answer"], [0, 0]),
        (["answer"], [0]),
        (["answer", END], [0, 1]),
    ],
)
def test_closing(pieces, closed):
    made, decode = spoken(pieces)
    assert closing(made, decode).dtype == float
    assert closing(made, decode).tolist() == closed
