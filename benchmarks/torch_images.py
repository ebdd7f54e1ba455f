"""The part of ``torch_engine.py`` with images: chats of products, as the catalogue of Qwen3-VL has them.

The engine gets chats as they are asked: base64 in JSON. ``generate`` gets what comes before the model ready-made, ids
and pixels, so that of its time nothing is spent on them; it takes batches, padded to their longest prompt.
"""

from __future__ import annotations

import base64
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from contest import Goal, compete, judge, speedup

from harness import env
from harness.engines.base import Failure, PromptTable, Replies, Requests, Sampling, TokenEvents, Workload
from harness.engines.bodies import BodyStore
from harness.engines.chats import qwen3_vl
from harness.engines.checkpoint import describe
from harness.engines.tiny_qwen3_vl import make_tiny_qwen3_vl
from harness.engines.torch_cpu import TorchCore, TorchSettings

if TYPE_CHECKING:
    from transformers import Qwen3VLMoeForConditionalGeneration

CHATS = 32
SLOTS = 16
SHORTEST, LONGEST = 24, 64
"""Tokens of an answer. Published answers have 43 on average."""
ROOM = 2048
IMAGES = Goal(f"{CHATS} chats with an image, {SHORTEST}..{LONGEST} tokens sampled: times as fast as generate", 3.0)

Chat = dict[str, Any]


def images(runs: int) -> bool:
    """Prints each turn; whether the goal is met."""
    folder = make_tiny_qwen3_vl(env.cache_dir() / "tiny-qwen3-vl", seed=0)
    core = TorchCore(TorchSettings(folder, slots=SLOTS, max_total_tokens=ROOM))
    model, chats = load(folder), [chat(number) for number in range(CHATS)]
    caps = np.random.default_rng(1).integers(SHORTEST, LONGEST + 1, CHATS).tolist()
    batches = [batch(folder, chats[first : first + SLOTS]) for first in range(0, CHATS, SLOTS)]
    print(f"checkpoint {describe(folder).name}, one thread: {CHATS} chats of {lengths(chats)} tokens with their image")
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch) / "products.chats"
        BodyStore.write(store, chats)
        same = sum(
            ours == qwen3_vl.decode(theirs)
            for ours, theirs in zip(
                answered(core, store, [SHORTEST] * SLOTS, greedy=True),
                generated(model, batches[0], SHORTEST, sample=False),
                strict=True,
            )
        )
        print(f"  {same} of {SLOTS} greedy answers are those of generate, which pads")

        def in_batches() -> int:
            for place, each in enumerate(batches):
                generated(model, each, max(caps[place * SLOTS : (place + 1) * SLOTS]), sample=True)
            return sum(caps)

        def engine() -> int:
            answered(core, store, caps, greedy=False)
            return sum(caps)

        turns = compete({"generate": in_batches, "torch engine": engine}, runs)
    return judge(IMAGES, speedup(turns), turns["generate"] + turns["torch engine"])


def chat(number: int) -> Chat:
    """A product: an image of 150 to 600 pixels a side, and a text of some hundred tokens."""
    chosen = np.random.default_rng(number)
    width, height = chosen.integers(150, 601, 2).tolist()
    words = " ".join(f"{word:x}" for word in chosen.integers(0, 4096, int(chosen.integers(40, 160))))
    file = io.BytesIO()
    pixels(width, height, chosen).save(file, "JPEG")
    url = f"data:image/JPEG;base64,{base64.b64encode(file.getvalue()).decode()}"
    parts = [{"type": "text", "text": words}, {"type": "image_url", "image_url": {"url": url}}]
    return {"messages": [{"role": "user", "content": parts}]}


def pixels(width: int, height: int, chosen: np.random.Generator) -> Any:  # noqa: ANN401 - Pillow's image
    """Blots of colour."""
    from PIL import Image

    blots = Image.fromarray(chosen.integers(0, 256, (8, 8, 3), dtype=np.uint8))
    return blots.resize((width, height), Image.Resampling.BICUBIC)


def lengths(chats: list[Chat]) -> str:
    """The shortest and the longest prompt."""
    counts = [len(qwen3_vl.prompt_ids(each)) for each in chats]
    return f"{min(counts)}..{max(counts)}"


def load(folder: Path) -> Qwen3VLMoeForConditionalGeneration:
    """The checkpoint as transformers loads it by default, in float32."""
    import torch
    from transformers import GenerationConfig, Qwen3VLMoeForConditionalGeneration

    model = Qwen3VLMoeForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config = GenerationConfig()
    return model


def batch(folder: Path, chats: list[Chat]) -> dict[str, Any]:
    """What ``generate`` is given: ids padded on the left, and the pixels of all images."""
    import torch
    from transformers import Qwen2VLImageProcessorPil

    read = [qwen3_vl.read(each) for each in chats]
    longest = max(len(each.ids) for each in read)
    ids = torch.tensor([[0] * (longest - len(each.ids)) + each.ids for each in read])
    mask = torch.tensor([[0] * (longest - len(each.ids)) + [1] * len(each.ids) for each in read])
    seen = Qwen2VLImageProcessorPil.from_pretrained(folder)(images=[each.image for each in read], return_tensors="pt")
    pads = (ids == qwen3_vl.IMAGE_PAD).int()
    return {"input_ids": ids, "attention_mask": mask, "mm_token_type_ids": pads, **seen}


def generated(
    model: Qwen3VLMoeForConditionalGeneration, given: dict[str, Any], count: int, *, sample: bool
) -> list[list[int]]:
    """What ``generate`` answers: ``count`` tokens to each prompt of a batch."""
    from transformers import GenerationConfig

    how = {"temperature": 0.7, "top_k": 20, "top_p": 0.8} if sample else {}
    config = GenerationConfig(max_new_tokens=count, do_sample=sample, pad_token_id=0, eos_token_id=None, **how)
    output = model.generate(**given, generation_config=config)
    answers: list[list[int]] = output[:, given["input_ids"].shape[1] :].tolist()
    return answers


def answered(core: TorchCore, store: Path, caps: list[int], *, greedy: bool) -> list[str]:
    """What the engine answers to the first chats of a store, each up to its own cap."""
    import orjson

    for number, cap in enumerate(caps):
        sampling = Sampling(0.0, 1.0, 0, cap, (), 0) if greedy else Sampling(0.7, 0.8, 20, cap, (), 0)
        load = Workload("products", sampling, TokenEvents.NONE, bodies=str(store))
        core.submit(Requests(load, [number], [number], PromptTable.empty(1), [0]))
    answers = [""] * len(caps)
    while core.wait_s() is not None:
        for event in core.step():
            if isinstance(event, Failure):
                raise SystemExit(event.message)
            if isinstance(event, Replies):
                start = 0
                for number, end in zip(event.numbers, event.ends, strict=True):
                    answers[number] = orjson.loads(event.data[start:end])["content"]
                    start = end
    return answers
