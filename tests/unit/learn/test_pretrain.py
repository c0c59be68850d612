import math

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from datpo.core.errors import InputError
from datpo.core.seeds import generator
from datpo.data.moves import LEVELS, Puzzle, draw_puzzle, solution
from datpo.learn import pretrain as module
from datpo.learn.muon import Muon, orthogonal
from datpo.learn.pretrain import Recipe, make_tokenizer, pretrain, read_texts

PROMPT = {"template": "plain", "format": "{problem}\n\n"}
RECIPE = {
    "seed": 0,
    "steps": 7,
    "tokens_per_step": 200,
    "levels": [1, 2],
    "curriculum": 0.5,
    "aimless": 0.5,
    "learning_rates": {"matrices": 0.02, "rest": 0.01},
    "cooldown": 0.4,
    "model": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "intermediate_size": 24,
    },
    "state_every": 3,
}


@pytest.fixture
def config(tmp_path):
    """Write the settings of a pre-training, and return the path."""

    def config(**changes):
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump({"prompt": PROMPT, "pretrain": {**RECIPE, **changes}}))
        return path

    return config


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(Recipe(**RECIPE), PROMPT)


def weights(folder):
    return load_file(folder / "model.safetensors")


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_the_model_is_published_as_transformers_loads_it(config, tmp_path, tokenizer):
    pretrain(config(), tmp_path / "checkpoint", tmp_path / "work")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint")
    loaded = PreTrainedTokenizerFast.from_pretrained(tmp_path / "checkpoint")
    text = "Start at 3. Reach 9 with 1 of: +6 -2.\n\n"
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.chat_template is None
    ends = (model.generation_config.eos_token_id, model.generation_config.pad_token_id)
    assert ends == (loaded.eos_token_id, loaded.pad_token_id) == (0, 1)
    out = model.generate(**loaded([text, text], return_tensors="pt"), max_new_tokens=3)
    assert out.shape[0] == 2
    assert not list((tmp_path / "work").iterdir())


def test_a_killed_job_ends_with_the_weights_it_would_have_had(config, tmp_path, monkeypatch):
    pretrain(config(), tmp_path / "whole", tmp_path / "work")
    update, seen = module._update, []

    def dies_at_the_sixth(*arguments):
        seen.append(arguments)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return update(*arguments)

    monkeypatch.setattr(module, "_update", dies_at_the_sixth)
    with pytest.raises(KeyboardInterrupt):
        pretrain(config(), tmp_path / "resumed", tmp_path / "work")
    assert not (tmp_path / "resumed").exists()
    pretrain(config(), tmp_path / "resumed", tmp_path / "work")
    assert len(seen) == 6 + 4  # three steps were saved
    assert equal(weights(tmp_path / "whole"), weights(tmp_path / "resumed"))


@pytest.mark.parametrize("left", [0, 100, 0.5])
def test_a_damaged_state_is_told_and_passed_over(config, tmp_path, monkeypatch, capsys, left):
    pretrain(config(), tmp_path / "whole", tmp_path / "work")
    path = tmp_path / "work" / f"pretrain-{module._fingerprint(yaml.safe_load(config().read_text()))}.pt"
    monkeypatch.setattr(module.Path, "unlink", lambda *arguments, **options: None)
    pretrain(config(), tmp_path / "again", tmp_path / "work")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(left * len(whole)) if left == 0.5 else left])
    pretrain(config(), tmp_path / "mended", tmp_path / "work")
    assert f"{path}: damaged" in capsys.readouterr().err
    assert equal(weights(tmp_path / "whole"), weights(tmp_path / "mended"))


def test_a_state_of_other_settings_is_not_continued(config, tmp_path):
    first = config(learning_rates={"matrices": 0.01, "rest": 0.01})
    (tmp_path / "work").mkdir()
    settings = yaml.safe_load(first.read_text())
    stale = tmp_path / "work" / f"pretrain-{module._fingerprint(settings)}.pt"
    stale.write_bytes(b"a state of the first settings")
    pretrain(config(), tmp_path / "checkpoint", tmp_path / "work")
    assert stale.read_bytes() == b"a state of the first settings"


def test_another_seed_gives_other_weights(config, tmp_path):
    pretrain(config(steps=1), tmp_path / "a", tmp_path / "work")
    pretrain(config(steps=1, seed=1), tmp_path / "b", tmp_path / "work")
    assert not equal(weights(tmp_path / "a"), weights(tmp_path / "b"))


def test_a_misspelt_key_is_refused(config, tmp_path):
    with pytest.raises(InputError, match="unexpected keyword argument 'stepz'"):
        pretrain(config(stepz=3), tmp_path / "checkpoint", tmp_path / "work")


def test_a_prompt_must_not_run_into_its_response():
    with pytest.raises(InputError, match=r"prompt\.format must end in a line break"):
        make_tokenizer(Recipe(**RECIPE), {"template": "plain", "format": "{problem} \\"})


@pytest.mark.parametrize("move", [" +9", " -2", " *3", " 0", " 39", ".\n\n", " \\boxed{", "From", "Start"])
def test_moves_numbers_and_words_are_single_tokens(tokenizer, move):
    assert len(tokenizer.encode(move)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Start at 10. Reach 12 with 1 of: +12 -3.",
        "é ≠ \\frac{1}{2}\t 名\n\n x",
        "  two  spaces ,and a stop .",
        "\u0000\x7f",
    ],
)
def test_any_text_comes_back_from_its_tokens(tokenizer, text):
    encoded = tokenizer(text, return_offsets_mapping=True)
    assert tokenizer.decode(encoded["input_ids"]) == text
    spelt = [text[start:stop] for start, stop in encoded["offset_mapping"]]
    if text.isascii():
        assert "".join(spelt) == text


def test_a_sign_belongs_to_its_number(tokenizer):
    text = "of: +12 -3"
    pieces = [piece for piece, _ in tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)]
    assert pieces == ["of", ":", "Ġ+12", "Ġ-3"]


def test_a_prompt_has_the_same_tokens_alone(tokenizer):
    rng = generator(0)
    for level in LEVELS:
        puzzle, sequence = draw_puzzle(level, rng)
        prompt, answer = puzzle.text() + "\n\n", solution(puzzle, sequence)
        assert tokenizer.encode(prompt) + tokenizer.encode(answer) == tokenizer.encode(prompt + answer)


def test_texts_are_training_puzzles_of_the_level_the_curriculum_has_reached(tokenizer):
    recipe = Recipe(**{**RECIPE, "levels": [1, 2, 6], "steps": 300, "curriculum": 0.9})
    levels = []
    for step in (0, 88, *range(280, 300)):
        token_NT, answer_from = read_texts(recipe, PROMPT, tokenizer, step)
        assert abs(token_NT.numel() - recipe.tokens_per_step) < 60
        for row in token_NT:
            puzzle = Puzzle.parse(tokenizer.decode(row[:answer_from]).strip())
            answer = tokenizer.decode(row[answer_from:])
            sequence = answer.split("{")[1].split("}")[0].split()
            assert puzzle.part == "training"
            assert answer == solution(puzzle, sequence) + "<|end|>"
        levels.append((len(puzzle.moves), puzzle.use))
    assert levels[:2] == [LEVELS[1], LEVELS[1]]
    assert set(levels[2:]) == {LEVELS[1], LEVELS[2], LEVELS[6]}


def test_aimless_is_a_share_of_the_answers(tokenizer):
    def aimed(share):
        recipe = Recipe(**{**RECIPE, "aimless": share, "tokens_per_step": 10_000, "levels": [2]})
        token_NT, answer_from = read_texts(recipe, PROMPT, tokenizer, 6)
        hits = [
            Puzzle.parse(tokenizer.decode(row[:answer_from]).strip()).reaches(
                tokenizer.decode(row[answer_from:]).split("{")[1].split("}")[0].split()
            )
            for row in token_NT
        ]
        return sum(hits) / len(hits)

    assert aimed(0.0) == 1.0
    assert 0.5 < aimed(0.5) < 0.75  # a fifth of the aimless ones reach the target by chance
    assert aimed(1.0) < 0.35


def test_muons_steps_are_orthogonal():
    torch.manual_seed(0)
    for shape in [(3, 8, 20), (3, 20, 8)]:
        singular = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
        assert singular.min() > 0.5
        assert singular.max() < 1.3


def test_muon_by_hand():
    # A gradient of one row: orthogonal means of length 1, here along (3, 4) / 5.
    weight = torch.nn.Parameter(torch.zeros(1, 2))
    optimizer = Muon([weight], lr=0.1)
    weight.grad = torch.tensor([[3.0, 4.0]])
    optimizer.step()
    direction = weight.detach() / weight.detach().norm()
    torch.testing.assert_close(direction, torch.tensor([[-0.6, -0.8]]))
    assert math.isclose(float(weight.detach().norm()), 0.1, rel_tol=0.35)
