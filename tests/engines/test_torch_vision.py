"""Qwen3-VL in the torch engine against transformers' own ``generate``, and chats that cannot be answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.base import PromptTable, Replies, Requests, Sampling, TokenEvents, Workload
from harness.engines.bodies import BodyStore, chat_as_prompt
from harness.engines.chats import qwen3_vl
from harness.engines.chats.picture import Grid
from harness.engines.torch_cpu import TorchCore, TorchSettings
from harness.errors import ConfigError, RunBroke
from tests.engines.chats.pictures import chat, data_url, encoded, noise, picture_chat
from tests.engines.test_torch_cpu import Heard

pytestmark = [pytest.mark.torch, pytest.mark.qwen3vl, pytest.mark.usefixtures("one_thread")]

GREEDY = Sampling(0.0, 1.0, 0, 12, (), 0)
Chat = Mapping[str, object]
Generate = Callable[[Chat, int], list[int]]

CHATS: list[Chat] = [
    picture_chat(384, 256),
    picture_chat(512, 512, text="What is shown here? Answer briefly."),
    picture_chat(90, 40, 2),
    chat(data_url(encoded(noise(700, 150, 3), "JPEG"), "JPEG"), text="\u00e9t\u00e9 <b>5</b>", system=None),
    picture_chat(200, 520, 4, text="word " * 60),
]


@pytest.fixture(scope="module")
def make_core(tiny_qwen3_vl: Path) -> Callable[..., TorchCore]:
    def make(**settings: Any) -> TorchCore:
        return TorchCore(TorchSettings(tiny_qwen3_vl, **({"slots": 3, "max_total_tokens": 640} | settings)))

    return make


@pytest.fixture(scope="module")
def core(make_core: Callable[..., TorchCore]) -> TorchCore:
    """Fewer slots than chats, and pieces that cut images: a step reads 50 tokens of prompts."""
    return make_core(prefill_chunk=50)


@pytest.fixture(scope="module")
def generate(tiny_qwen3_vl: Path) -> Generate:
    """What transformers' ``generate`` answers to one chat, with the pixels of its own processor."""
    import torch
    import transformers

    torch.set_num_threads(1)
    model = transformers.Qwen3VLMoeForConditionalGeneration.from_pretrained(tiny_qwen3_vl, dtype=torch.float32).eval()
    processor = transformers.Qwen2VLImageProcessorPil.from_pretrained(tiny_qwen3_vl)

    def answer(asked: Chat, count: int) -> list[int]:
        read = qwen3_vl.read(asked)
        ids = torch.tensor([read.ids])
        output = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            mm_token_type_ids=(ids == 151_655).int(),
            **processor(images=[read.image], return_tensors="pt"),
            do_sample=False,
            max_new_tokens=count,
        )
        found: list[int] = output[0, len(read.ids) :].tolist()
        return found

    return answer


@pytest.fixture(scope="module")
def expected(generate: Generate) -> list[list[int]]:
    return [generate(each, GREEDY.max_new_tokens) for each in CHATS]


def ask_as_prompts(core: TorchCore, chats: Sequence[Chat], sampling: Sampling = GREEDY, first: int = 0) -> None:
    prompts = [chat_as_prompt(json.dumps(each).encode()) for each in chats]
    table = PromptTable.from_lists([prompt.tolist() for prompt in prompts])
    load = Workload("test", sampling, TokenEvents.ALL, chat_prompts=True)
    n = len(chats)
    core.submit(Requests(load, range(first, first + n), range(n), table, range(n)))


def test_greedy_answers_equal_generate_id_by_id(core: TorchCore, expected: list[list[int]]) -> None:
    core.cancel()
    ask_as_prompts(core, CHATS)
    heard = Heard().drain(core)
    assert not heard.failures
    assert [heard.answers[number] for number in range(len(CHATS))] == expected
    assert heard.tokens == heard.answers


def test_alone_and_in_one_piece_they_are_the_same(
    make_core: Callable[..., TorchCore], expected: list[list[int]]
) -> None:
    core = make_core(slots=1, prefill_chunk=640)
    for number, each in enumerate(CHATS):
        ask_as_prompts(core, [each], first=number)
        assert Heard().drain(core).answers == {number: expected[number]}


def test_they_join_beside_prompts_of_ids_and_later(
    make_core: Callable[..., TorchCore], expected: list[list[int]]
) -> None:
    core, alone = make_core(slots=8, prefill_chunk=70), make_core(slots=1)
    prompts = [np.random.default_rng(seed).integers(0, 151_643, 80).tolist() for seed in range(3)]
    load = Workload("test", GREEDY, TokenEvents.NONE)
    plain = Requests(load, range(100, 103), range(3), PromptTable.from_lists(prompts), range(3))
    heard = Heard()
    core.submit(plain)
    for number, each in enumerate(CHATS):
        ask_as_prompts(core, [each], first=number)
        for _ in range(3):
            heard.step(core)
    heard.drain(core)
    alone.submit(plain)
    by_ids = Heard().drain(alone).answers
    assert heard.answers == by_ids | dict(enumerate(expected))


def test_another_image_has_another_answer(core: TorchCore) -> None:
    core.cancel()
    ask_as_prompts(core, [picture_chat(384, 256, seed) for seed in range(3)])
    answers = Heard().drain(core).answers
    assert len({tuple(answer) for answer in answers.values()}) == 3


def test_chats_of_a_store_are_answered_by_text(core: TorchCore, expected: list[list[int]], tmp_path: Path) -> None:
    core.cancel()
    store = tmp_path / "some.chats"
    BodyStore.write(store, CHATS)
    load = Workload("test", GREEDY, TokenEvents.FIRST, bodies=str(store))
    rows = [4, 0, 7, 1]
    core.submit(Requests(load, [40, 41, 42, 43], rows, PromptTable.empty(len(rows)), range(len(rows))))
    said: dict[int, dict[str, object]] = {}
    failed = {}
    while core.wait_s() is not None:
        for event in core.step():
            if isinstance(event, Replies):
                start = 0
                for i, number in enumerate(event.numbers):
                    assert event.tokens[i] == GREEDY.max_new_tokens
                    assert event.first_ns[i] < event.done_ns[i]
                    said[number] = json.loads(bytes(event.data[start : event.ends[i]]))
                    start = event.ends[i]
            elif hasattr(event, "kind"):
                failed[event.number] = (event.kind, event.message)
    assert said == {number: {"content": qwen3_vl.decode(expected[row])} for number, row in ((40, 4), (41, 0), (43, 1))}
    assert failed == {42: ("bad_row", "row 7 of 5 chats")}


def test_a_store_that_is_gone_fails_its_chats(core: TorchCore, tmp_path: Path) -> None:
    core.cancel()
    load = Workload("test", GREEDY, TokenEvents.NONE, bodies=str(tmp_path / "gone.chats"))
    core.submit(Requests(load, [1], [0], PromptTable.empty(1), [0]))
    failure = Heard().drain(core).failures[1]
    assert (failure.kind, "gone.chats" in failure.message) == ("no_chats", True)


def test_chats_that_cannot_be_answered_fail_alone(core: TorchCore, expected: list[list[int]]) -> None:
    core.cancel()
    url = data_url(encoded(noise(64, 64)))
    truncated = data_url(encoded(noise(64, 64), "JPEG")[:-900], "JPEG")
    bad: list[tuple[Chat, str, str]] = [
        (chat(), "no_image", "the chat has no image"),
        (chat(url, url), "many_images", "the chat has 2 images, not one"),
        (chat("https://example.com/a.png"), "bad_image_url", "not with data:image/"),
        (chat("data:image/png;base64,AAAA"), "bad_image", "the image cannot be read"),
        (chat(truncated), "bad_image", "the image cannot be decoded"),
        (picture_chat(64, 64, text="word " * 700), "prompt_too_long", "exceed the engine's 640 in all"),
        (picture_chat(1300, 900), "prompt_too_long", "exceed the engine's 640 in all"),
        ({"messages": 5}, "bad_chat", "no list of messages"),
    ]
    ask_as_prompts(core, [CHATS[0], *(each for each, _, _ in bad), CHATS[2]])
    heard = Heard().drain(core)
    assert heard.answers == {0: expected[0], len(bad) + 1: expected[2]}
    for number, (_, kind, message) in enumerate(bad, start=1):
        assert heard.failures[number].kind == kind
        assert message in heard.failures[number].message


def test_a_chat_ends_at_the_tokens_of_the_checkpoint(
    tiny_qwen3_vl: Path, tmp_path: Path, expected: list[list[int]]
) -> None:
    folder = copied(tiny_qwen3_vl, tmp_path)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, expected[0][3]]}))
    core = TorchCore(TorchSettings(folder, slots=1))
    ask_as_prompts(core, [CHATS[0]])
    assert Heard().drain(core).answers == {0: expected[0][:3]}


def test_pixels_and_states_are_let_go(core: TorchCore) -> None:
    core.cancel()
    body = core._model.body
    ask_as_prompts(core, [CHATS[0]], Sampling(0.0, 1.0, 0, 3, (), 0))
    core.step()
    working = core._table._at(0)
    assert not hasattr(working.prompt.image.image, "fp") or working.prompt.image.image.fp is None  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="closed"):
        working.prompt.image.image.getpixel((0, 0))  # type: ignore[attr-defined]
    assert [seen is not None for seen in body._seen] == [True, False, False]  # type: ignore[attr-defined]
    Heard().drain(core)
    assert body._seen == [None] * 3  # type: ignore[attr-defined]


def test_positions_are_those_of_transformers(tiny_qwen3_vl: Path) -> None:
    import torch
    import transformers

    from harness.engines.torch_vision import rope_positions

    config = transformers.Qwen3VLMoeConfig.from_pretrained(tiny_qwen3_vl)
    with torch.device("meta"):
        model = transformers.Qwen3VLMoeForConditionalGeneration(config).model
    for rows, columns, before, after in ((2, 2, 0, 1), (4, 10, 3, 5), (16, 6, 7, 2)):
        grid = Grid(rows, columns)
        ids = torch.tensor([[1] * before + [151_655] * grid.tokens + [1] * after])
        theirs, delta = model.get_rope_index(
            ids, mm_token_type_ids=(ids == 151_655).int(), image_grid_thw=torch.tensor([[1, rows, columns]])
        )
        ours, lag = rope_positions(ids.shape[1], before, grid)
        assert (ours.tolist(), lag) == (theirs[:, 0].tolist(), int(delta))


@pytest.mark.parametrize(
    "more", [{"min_p": 0.1}, {"repetition_penalty": 1.1}, {"presence_penalty": 1.0}, {"frequency_penalty": -1.0}]
)
def test_samplings_that_it_does_not_do_are_refused(core: TorchCore, more: dict[str, float]) -> None:
    (name,) = more
    with pytest.raises(ConfigError, match=f"does not sample with {name}"):
        ask_as_prompts(core, [CHATS[0]], Sampling(0.7, 0.8, 20, 16, (), 0, **more))


def test_a_model_without_a_tower_takes_no_chats(tiny_gpt_oss: Path) -> None:
    with pytest.raises(RunBroke, match="not chats"):
        ask_as_prompts(TorchCore(TorchSettings(tiny_gpt_oss, slots=1)), [CHATS[0]])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("generation_config.json", {}, r"the tokens that end an answer are \[\]"),
        ("generation_config.json", {"eos_token_id": "x"}, "the tokens that end an answer are 'x'"),
        ("preprocessor_config.json", {"size": {"shortest_edge": 9, "longest_edge": 8}}, "images of 9 to 8 pixels"),
        ("preprocessor_config.json", [], "holds no JSON object"),
        ("config.json", {"vision_config": {"patch_size": 14}}, r"the vision tower's patches are \(14, 2, 2\)"),
    ],
)
def test_a_checkpoint_of_another_form_is_told(
    name: str, content: Any, said: str, tiny_qwen3_vl: Path, tmp_path: Path
) -> None:
    from harness.engines.torch_vision import Qwen3Vl

    folder = copied(tiny_qwen3_vl, tmp_path)
    if name == "config.json":
        import transformers

        config = transformers.Qwen3VLMoeConfig.from_pretrained(folder)
        config.vision_config.patch_size = content["vision_config"]["patch_size"]
        with pytest.raises(ConfigError, match=said):
            Qwen3Vl(type("Model", (), {"config": config})(), folder, 1)
        return
    (folder / name).write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=said):
        TorchCore(TorchSettings(folder, slots=1))


def copied(checkpoint: Path, tmp_path: Path) -> Path:
    """The same checkpoint in a folder whose small files may be changed."""
    folder = tmp_path / "changed"
    folder.mkdir()
    for path in checkpoint.iterdir():
        if path.suffix == ".safetensors":
            (folder / path.name).symlink_to(path)
        else:
            (folder / path.name).write_bytes(path.read_bytes())
    return folder
