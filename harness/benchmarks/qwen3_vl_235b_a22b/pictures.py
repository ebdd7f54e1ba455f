"""Small pictures under CC0 that come with the package: what a stand-in's products look like.

``pictures/SOURCES.md`` says where each is from. They are data of the harness, none is in the benchmark's catalogue.
"""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from typing import Final

_SHA256: Final = {
    "bee.png": "1f93d6f418d23fdd75dacee30cce52c635e2f242e72fb31d80468ebf106ea023",
    "brick.jpg": "2bfd92b498bfdadae0a0eb3e903c5c0ab626d7c535735097ab0d2841a25f7a5e",
    "cactus.png": "3ca0a1de9037590b22359dfafae63e743ba8673699718ade9c200a93df79adbd",
    "card.png": "790197932a6b180120bf06b65bd54328b5bd58f64b2e6c9f675933d0337fa857",
    "cat.webp": "d0b2c3b3e1942edf923a197635face2384050e4e000431149a371572316cc62c",
    "coffee.jpg": "35022f6e281e9c4cbf1c2b56910feb11bbcd7179629aef0abd079956f446b62a",
    "coin.png": "27b756623b2da19b0b405d09f1f95240771b1d09072300f6096ff06445d7b5ed",
    "crate.png": "51ac4d7feec154c65151d425fd7ce1eef2ae38b6b5cdd1228d66357dfd0c9944",
    "flag.png": "46955b777fb3985c7aa09dc0f8522676289bff5708fd050814e2022714f8b5b9",
    "frog.png": "74a0de401d40b6e309747bdf5b473cbbe57c354cf76a7277475a909f17612fd5",
    "gem.png": "81ce8a3f91b6e5c70d536d77086caced27626127c191112afa487243929b71ad",
    "key.png": "cf87301e2cca9840b82f113c77723c261b90e8439346100e137c11a4a9211401",
    "mushroom.png": "3069540b93f7284f3032df3c6bf9d61e04306b9c7991cb0193d3743ee4993174",
    "rocket.png": "6df7d6bc297b6657e717962af03094045af03a21e6f2b925bd89c7b854b1f25e",
    "star.png": "ab986c8d9c9c5d8d9ce83a0398ede320aea544ce648930cfd84bd5aa4f44f878",
    "tank.png": "5873d68ab4151be76444c8c7c33d505afa65a4aec528f2d322adf667825d6451",
}
NAMES: Final = tuple(sorted(_SHA256))
SMALLEST: Final = "tank.png"


@functools.cache
def load(name: str) -> bytes:
    """The file of a picture. KeyError for an unknown name, ValueError where the package was changed."""
    expected = _SHA256[name]
    content = resources.files(__package__).joinpath("pictures").joinpath(name).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ValueError(f"{name} has the sha256 {found}, not {expected}: the package is not as it was published")
    return content
