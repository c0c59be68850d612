import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import branch, tree

from datpo.core.tree import Fork
from datpo.search.budget import Plan
from datpo.search.forks import NO_FORKS, RULES, fork_bounds, least_sure, named, sentence_scores

OFFSETS = pytest.mark.parametrize("after", [False, True])


def base(finish="length", **signals):
    """A base rollout with these signals; entropies are 0 where none are given."""
    length = len(next(iter(signals.values())))
    arrays = {name: np.array(values, dtype=float) for name, values in ({"entropy": [0] * length} | signals).items()}
    return branch(None, 0, length, 1, finish=finish, signals=arrays)


def positions(rule, one, forks, seed=0):
    return [fork.at for fork in rule.choose(tree(one), Plan(forks, 2), np.random.default_rng(seed))]


# sentence:      0    0    1    1    1    2    3    3
# mean entropy:  0.3       0.5            0.9  0.2         ranks: 2, 1, 0, 3
SENTENCES = base(entropy=[0.1, 0.5, 0.6, 0.0, 0.9, 0.9, 0.2, 0.2], sentence=[0, 0, 1, 1, 1, 2, 3, 3])


# --- what is forked -------------------------------------------------------------------------------------------------


def test_each_fork_gets_the_plans_siblings_and_every_base_is_forked():
    forks = named("sent-entropy", False).choose(tree(SENTENCES, SENTENCES), Plan(1, 4), np.random.default_rng(0))
    assert forks == [Fork(0, 5, 4), Fork(1, 5, 4)]


def test_only_base_rollouts_are_forked_and_only_those_of_the_plan():
    grown = tree(SENTENCES, branch(0, 5, 3, 0), SENTENCES, SENTENCES)
    rule = named("sent-entropy", False)
    assert rule.choose(grown, Plan(1, 2), np.random.default_rng(0)) == [Fork(0, 5, 2), Fork(2, 5, 2), Fork(3, 5, 2)]
    assert rule.choose(grown, Plan(1, 2, bases=(2,)), np.random.default_rng(0)) == [Fork(2, 5, 2)]
    assert rule.choose(grown, Plan(1, 2, bases=()), np.random.default_rng(0)) == []


def test_parallel_sampling_forks_nothing():
    assert NO_FORKS.choose(tree(SENTENCES), Plan(3, 4), np.random.default_rng(0)) == []
    assert NO_FORKS.signals == ()


def test_an_unknown_rule_is_refused_with_the_names_there_are():
    known = "random, fixed-seg, atb, atb-release, tok-entropy, tok-entropy-5, tok-entropy-10, sent-entropy"
    with pytest.raises(ValueError, match=f"one of {known}, not 'entropy'"):
        named("entropy", after_first_token=True)


@pytest.mark.parametrize(
    ("name", "signals"),
    [
        ("random", ()),
        ("fixed-seg", ()),
        ("tok-entropy", ()),
        ("tok-entropy-5", ()),
        ("tok-entropy-10", ()),
        ("sent-entropy", ("sentence",)),
        ("atb", ("step", "influence")),
        ("atb-release", ("paragraph", "token_influence")),
    ],
)
def test_rules_name_the_signals_they_read(name, signals):
    assert named(name, after_first_token=True).signals == signals
    assert named(name, after_first_token=True, fill=True).signals == signals


# --- what holds for every rule --------------------------------------------------------------------------------------


@st.composite
def bases(draw):
    """A base rollout with every signal; sentences and steps never fall, an end token belongs to none."""
    length = draw(st.integers(1, 25))
    stopped = draw(st.booleans())

    def numbers():
        return draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 2.0]), min_size=length, max_size=length))

    def units():
        new = draw(st.lists(st.booleans(), min_size=length, max_size=length))
        unit_T = np.cumsum(new, dtype=float)
        return np.append(unit_T[:-1], -1.0) if stopped else unit_T

    signals = {name: np.array(numbers()) for name in ("entropy", "influence", "token_influence")}
    signals |= {"sentence": units(), "step": units(), "paragraph": units(), "closing": np.array(numbers())}
    return branch(
        None,
        0,
        length,
        1,
        finish="stop" if stopped else "length",
        signals=signals,
        logprobs=[-number for number in numbers()],
    )


@given(bases(), st.integers(0, 8), st.sampled_from([*RULES]), st.booleans(), st.booleans(), st.integers(0, 3))
def test_every_rule_gives_at_most_k_distinct_allowed_positions_in_order(one, forks, name, after, fill, seed):
    first, last = fork_bounds(one)
    free = max(0, last - first + 1)
    chosen = positions(named(name, after, fill), one, forks, seed)
    assert chosen == sorted(set(chosen))
    assert all(first <= at <= last for at in chosen)
    assert len(chosen) <= forks
    if fill or name in ("random", "tok-entropy"):
        assert len(chosen) == min(forks, free)


@given(bases(), st.integers(0, 8))
def test_surprise_too_stays_within_the_bounds(one, forks):
    first, last = fork_bounds(one)
    chosen = positions(least_sure("surprise"), one, forks)
    assert chosen == sorted(set(chosen))
    assert all(first <= at <= last and one.signals["closing"][at] == 0 for at in chosen)


@pytest.mark.parametrize("name", [*RULES])
@pytest.mark.parametrize("length", [1, 2])
@OFFSETS
def test_responses_too_short_to_fork(name, length, after):
    ones = [1.0] * length
    units = [0] * (length - 1) + [-1]
    short = base(
        entropy=ones, sentence=units, step=units, paragraph=units, influence=ones, token_influence=ones, finish="stop"
    )
    assert positions(named(name, after), short, 3) == []
    assert positions(named(name, after, fill=True), short, 3) == []


# --- sent-entropy ---------------------------------------------------------------------------------------------------


def test_sentence_scores_by_hand():
    starts, scores = sentence_scores(SENTENCES)
    assert starts.tolist() == [0, 2, 5, 6]
    assert scores == pytest.approx([0.3, 0.5, 0.9, 0.2])


@pytest.mark.parametrize(
    ("forks", "after", "expected"),
    [
        (1, False, [5]),
        (2, False, [2, 5]),
        (3, False, [2, 5, 6]),  # the first sentence starts at 0, where no fork may lie
        (9, False, [2, 5, 6]),  # more forks than sentences
        (1, True, [6]),
        (2, True, [3, 6]),
        (3, True, [1, 3, 6]),  # keeping its first token, the first sentence can be forked
        (4, True, [1, 3, 6, 7]),
    ],
)
def test_forks_at_the_most_uncertain_sentences(forks, after, expected):
    assert positions(named("sent-entropy", after), SENTENCES, forks) == expected


def test_a_tie_goes_to_the_earlier_sentence():
    assert positions(named("sent-entropy", False), base(entropy=[0.5] * 6, sentence=[0, 0, 1, 1, 2, 2]), 1) == [2]


def test_the_end_token_belongs_to_no_sentence_and_bounds_the_forks():
    ended = base(entropy=[0.1, 0.1, 0.2, 5.0], sentence=[0, 0, 1, -1], finish="stop")
    assert fork_bounds(ended) == (1, 2)
    assert sentence_scores(ended)[1] == pytest.approx([0.1, 0.2])
    assert positions(named("sent-entropy", False), ended, 3) == [2]
    # after its first token the second sentence would leave the end token alone behind the fork
    assert positions(named("sent-entropy", True), ended, 3) == [1]


# --- random and fixed-seg -------------------------------------------------------------------------------------------


@OFFSETS
def test_random_positions_are_equally_likely(after):
    # bounds 1..5 of 7 tokens with an end token: each of the 5 positions is among 2 drawn with chance 2/5;
    # over 2,000 trajectories the share has a standard error of sqrt(.4 x .6 / 2000) = 0.011
    one, rng = base(entropy=[0] * 7, finish="stop"), np.random.default_rng(1)
    drawn = named("random", after).choose(tree(*[one] * 2000), Plan(2, 1), rng)
    counts = np.bincount([fork.at for fork in drawn], minlength=7)
    assert counts[[0, 6]].tolist() == [0, 0]
    assert counts[1:6] / 2000 == pytest.approx([0.4] * 5, abs=0.05)


def test_random_positions_follow_the_generator():
    one = base(entropy=[0] * 200)
    assert positions(named("random", True), one, 3, seed=1) == positions(named("random", True), one, 3, seed=1)
    assert positions(named("random", True), one, 3, seed=1) != positions(named("random", True), one, 3, seed=2)


@pytest.mark.parametrize(
    ("length", "finish", "forks", "expected"),
    [
        (10, "length", 4, [2, 4, 6, 8]),  # 10k/5
        (11, "length", 3, [2, 5, 8]),  # 2.75, 5.5, 8.25
        (11, "stop", 3, [2, 5, 7]),  # |tau| = 10: 2.5, 5, 7.5
        (3, "length", 4, [1, 2]),  # 0.6, 1.2, 1.8, 2.4: 0 is no fork position, 1 stands twice
    ],
)
@OFFSETS
def test_fixed_segments(length, finish, forks, expected, after):
    assert positions(named("fixed-seg", after), base(entropy=[0] * length, finish=finish), forks) == expected


# --- tok-entropy ----------------------------------------------------------------------------------------------------

TOKENS = base(entropy=[0.9, 0.1, 0.8, 0.7, 0.2, 0.8, 0.3, 0.99], finish="stop")  # bounds 1..6


@pytest.mark.parametrize(
    ("forks", "after", "expected"),
    [
        (1, False, [2]),  # token 0 may not be sampled anew, nor the end token; tokens 2 and 5 tie
        (3, False, [2, 3, 5]),
        (1, True, [1]),  # token 0 stays in the prefix
        (4, True, [1, 3, 4, 6]),  # tokens 0, 2, 3, 5
    ],
)
def test_forks_at_the_most_uncertain_tokens(forks, after, expected):
    assert positions(named("tok-entropy", after), TOKENS, forks) == expected


def crowded():
    """40 tokens, 5 % are 2 and 10 % are 4; entropy falls in the order of tokens 10, 11, 12, 13, 14, 15, 30."""
    entropy = np.zeros(40)
    entropy[[10, 11, 12, 13, 14, 15, 30]] = [7, 6, 5, 4, 3, 2, 1]
    return entropy


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tok-entropy", [10, 11, 12]),
        ("tok-entropy-5", [10, 13, 30]),  # 11 and 12 are within 2 of 10; 14 and 15 within 2 of 13
        ("tok-entropy-10", [10, 15, 30]),  # 11 to 14 are within 4 of 10
    ],
)
def test_spaced_tokens_pass_over_those_close_to_a_chosen_one(name, expected):
    assert positions(named(name, False), base(entropy=crowded()), 3) == expected
    assert positions(named(name, True), base(entropy=crowded()), 3) == [at + 1 for at in expected]


def test_the_end_token_is_no_part_of_the_length_that_spaces_are_measured_by():
    # |tau| = 39 without the end token: 10 % are 3.9, so 14 is far enough from 10
    assert positions(named("tok-entropy-10", False), base(entropy=crowded(), finish="stop"), 2) == [10, 14]


# --- attention-based branching --------------------------------------------------------------------------------------


def steps(influences, finish="length", signal="influence"):
    """Steps of two tokens each."""
    numbers = np.repeat(np.array(influences, dtype=float), 2)
    step = np.repeat(np.arange(len(influences)), 2)
    if finish == "stop":
        numbers, step = np.append(numbers, 9.0), np.append(step, -1)
    return base(finish=finish, step=step, paragraph=step, **{signal: numbers})


@pytest.mark.parametrize(
    ("influences", "forks", "expected"),
    [
        # the first step counts as 0, so 0 0 1 2 3 4: quantile at rank 0.8 x 5 = 4: 3; steps 2 and 4 reach it
        ([9, 1, 4, 0, 3, 2], 2, [4, 8]),
        ([9, 1, 4, 0, 3, 2], 1, [4]),  # the earliest, not the most influential
        ([9, 1, 3, 0, 4, 2], 1, [4]),
        ([9, 1, 4, 0, 3, 2], 3, [2, 4, 8]),  # too few: the earliest other step joins
        # 0 0 0 0 0 5: the quantile is 0, so the smallest positive influence is the threshold
        ([1, 0, 0, 5, 0, 0], 1, [6]),
        ([1, 0, 0, 0, 0, 0], 2, [2, 4]),  # no influence at all: the earliest
        ([7], 2, []),
    ],
)
def test_attention_forks_at_the_earliest_influential_steps(influences, forks, expected):
    for finish in ("length", "stop"):
        one = steps(influences, finish)
        assert positions(named("atb", False), one, forks) == expected
        assert positions(named("atb", True), one, forks) == [at + 1 for at in expected]


def test_a_step_counts_with_the_very_number_its_tokens_carry():
    # three tokens of 0.1 have a mean above 0.1 in floating point, one token has not: both steps reach the quantile
    one = base(step=[0, 1, 1, 1, 2], influence=[0, 0.1, 0.1, 0.1, 0.1])
    assert (0.1 + 0.1 + 0.1) / 3 > 0.1
    assert positions(named("atb", False), one, 2) == [1, 4]
    one = base(step=[0, 1, 2, 2, 2], influence=[0, 0.1, 0.1, 0.1, 0.1])
    assert positions(named("atb", False), one, 1) == [1]


@pytest.mark.parametrize(
    ("influences", "forks", "expected"),
    [
        # 9 1 4 0 3 2: the first step counts, the quantile at rank 4 is 4, and only step 2 reaches it
        ([9, 1, 4, 0, 3, 2], 3, [4]),
        # 0 5 5 5 5 5: five candidates, but never more than two forks
        ([0, 5, 5, 5, 5, 5], 5, [2, 4]),
        ([0, 5, 5, 5, 5, 5], 1, [2]),
        # 5 1 1: quantile 1 + 0.6 x 4 = 3.4: the first step alone reaches it, so the earliest others are taken
        ([5, 1, 1], 2, [2, 4]),
        ([0, 0, 0], 2, []),  # no influence, no forks
    ],
)
@OFFSETS
def test_released_attention_forks(influences, forks, expected, after):
    one = steps(influences, signal="token_influence")
    assert positions(named("atb-release", after), one, forks) == expected


def test_released_influence_is_the_mean_over_a_steps_tokens():
    # means 0, 3, 2 (peak 4), 0; quantile at rank 0.8 x 3 = 2.4 of 0 0 2 3: 2.4
    one = base(paragraph=[0, 1, 2, 2, 3], token_influence=[0, 3, 0, 4, 0])
    assert positions(named("atb-release", False), one, 2) == [1]


# --- filling --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "start", "forks", "expected"),
    [
        (10, 7, 3, [2, 5, 7]),  # the sentence's 7, then round(2.5) = 2 and round(5); not round(7.5)
        (10, 5, 3, [2, 5, 8]),  # round(5) is taken already, so round(7.5) = 8 is needed
        (6, 3, 9, [1, 2, 3, 4, 5]),  # all there are
        (6, 6, 4, [1, 2, 4, 5]),  # nothing but equidistant ones: 1.2, 2.4, 3.6, 4.8
    ],
)
def test_missing_positions_are_filled_with_equidistant_ones(length, start, forks, expected):
    one = base(sentence=[0] * start + [1] * (length - start))
    own = [start] if start < length else []
    assert positions(named("sent-entropy", False), one, forks) == own
    assert positions(named("sent-entropy", False, fill=True), one, forks) == expected


def test_two_released_attention_forks_are_filled_up_too():
    # 12 tokens, K = 3: positions 2 and 4, then round(3) = 3
    one = steps([0, 5, 5, 5, 5, 5], signal="token_influence")
    assert positions(named("atb-release", True, fill=True), one, 3) == [2, 3, 4]


# --- the most surprising tokens (TreeRL) ----------------------------------------------------------------------------


def sampled(parent, start, logprobs, closing=None, finish="length"):
    closing = np.zeros(len(logprobs)) if closing is None else np.array(closing, dtype=float)
    return branch(parent, start, len(logprobs), 1, logprobs=logprobs, finish=finish, signals={"closing": closing})


def surprised(grown, forks, siblings=2, bases=None):
    rule = least_sure("surprise")
    assert rule.signals == ("closing",)
    chosen = rule.choose(grown, Plan(forks, siblings, bases), np.random.default_rng(0))
    assert all(fork.siblings == siblings for fork in chosen)
    return [(fork.branch, fork.at) for fork in chosen]


# Base 0 (positions 0 to 4) with branches 2 and 3 (from 2), and base 1 (positions 0 to 3) with branch 4 (from 1),
# which was forked again at 3 (branch 5).
GROVE = tree(
    sampled(None, 0, [-9, -1, -2, -3, -8], finish="stop"),
    sampled(None, 0, [-9, -4, -1, -1]),
    sampled(0, 2, [-9, -5, -1]),
    sampled(0, 2, [-9, -3, -6]),
    sampled(1, 1, [-9, -1, -2]),
    sampled(4, 3, [-9, -7]),
)


@pytest.mark.parametrize(
    ("forks", "expected"),
    [
        # never the first token of a branch, nor the end token
        (1, [(3, 4), (5, 4)]),  # -6 in the first tree, -7 in the second
        (2, [(2, 3), (3, 4), (1, 1), (5, 4)]),  # -5, -4
        (3, [(0, 3), (2, 3), (3, 4), (1, 1), (4, 3), (5, 4)]),  # -3 twice: the earlier branch; -2
    ],
)
def test_the_least_sure_tokens_of_each_tree_are_sampled_anew(forks, expected):
    assert surprised(GROVE, forks) == expected


def test_the_plans_bases_say_which_trees():
    assert surprised(GROVE, 1, bases=(1,)) == [(5, 4)]
    assert surprised(GROVE, 1, bases=()) == []


def test_a_tie_goes_to_the_earlier_token():
    assert surprised(tree(sampled(None, 0, [-1, -2, -3, -3, -3])), 2) == [(0, 2), (0, 3)]


def test_nothing_is_forked_behind_the_announcement_of_the_answer():
    one = sampled(None, 0, [-1, -2, -3, -9, -9], closing=[0, 0, 0, 1, 1])
    assert surprised(tree(one), 3) == [(0, 1), (0, 2)]


def test_a_place_may_be_forked_in_two_rounds():
    one = sampled(None, 0, [-1, -1, -5, -1])
    grown = tree(one, sampled(0, 2, [-1, -1]))
    assert surprised(grown, 1) == [(0, 2)]
