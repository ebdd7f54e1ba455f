"""Products made up for the stand-in: what a picture shows, its true category, and how shops would describe it."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Thing:
    """What one picture shows: its category, some that are near it, and its name in a few languages."""

    picture: str
    category: str
    near: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """One row of a catalogue, but for its picture's bytes."""

    picture: str
    title: str
    description: str
    categories: tuple[str, ...]
    category: str
    brand: str
    is_secondhand: bool

    @property
    def categories_json(self) -> str:
        """As the mlcommons client keeps the list: JSON with all but ASCII escaped."""
        return json.dumps(self.categories)


def _thing(picture: str, category: str, near: str, names: str) -> Thing:
    """``near`` are other last levels below the same parent, ``names`` what it is called; both parted by bars."""
    parent = category.rpartition(" > ")[0]
    return Thing(picture, category, tuple(f"{parent} > {leaf}" for leaf in near.split("|")), tuple(names.split("|")))


THINGS: Final = (
    _thing(
        "bee.png",
        "Toys & Games > Toys > Dolls, Playsets & Toy Figures > Stuffed Animals > Insects",
        "Bears|Cats|Sea Creatures",
        "plush bee|abeille en peluche|Plüschbiene|ぬいぐるみのミツバチ",
    ),
    _thing(
        "brick.jpg",
        "Hardware > Building Materials > Masonry Consumables > Bricks & Concrete Blocks > Facing Bricks",
        "Fire Bricks|Concrete Blocks|Paving Bricks",
        "facing brick|brique de parement|Klinkerriemchen|外壁レンガ",
    ),
    _thing(
        "cactus.png",
        "Home & Garden > Plants > Indoor & Outdoor Plants > Cacti & Succulents",
        "Bushes & Shrubs|Landscaping & Garden Plants|Potted Houseplants",
        "potted cactus|cactus en pot|Kaktus im Topf|仙人掌盆栽",
    ),
    _thing(
        "card.png",
        "Toys & Games > Games > Card Games > Playing Cards",
        "Collectible Cards|Tarot Cards|Blank Cards",
        "playing card, king of hearts|carte à jouer, roi de cœur|Spielkarte Herzkönig|トランプ ハートのキング",
    ),
    _thing(
        "cat.webp",
        "Arts & Entertainment > Hobbies & Creative Arts > Artwork > Posters, Prints & Visual Artwork > Photographs",
        "Posters|Paintings|Visual Artwork",
        "print of a ginger cat|tirage d'un chat roux|Fotodruck einer Katze|猫の写真プリント",
    ),
    _thing(
        "coffee.jpg",
        "Home & Garden > Kitchen & Dining > Tableware > Coffee & Tea Sets > Espresso Cups & Saucers",
        "Tea Pots|Mugs|Sugar Bowls & Creamers",
        "espresso cup with saucer|tasse à expresso|Espressotasse mit Untertasse|エスプレッソカップ",
    ),
    _thing(
        "coin.png",
        "Arts & Entertainment > Hobbies & Creative Arts > Collectibles > Collectible Coins & Currency > Gold Coins",
        "Silver Coins|Banknotes|Commemorative Medals",
        "gold-plated coin|pièce plaquée or|vergoldete Münze|金貨",
    ),
    _thing(
        "crate.png",
        "Home & Garden > Household Supplies > Storage & Organization > Household Storage Containers > Wooden Crates",
        "Plastic Bins|Storage Baskets|Cardboard Boxes",
        "wooden crate|caisse en bois|Holzkiste|木箱",
    ),
    _thing(
        "flag.png",
        "Home & Garden > Decor > Flags & Windsocks > Garden Flags",
        "National Flags|Windsocks|Pennants",
        "green garden flag|drapeau de jardin vert|grüne Gartenfahne|緑のガーデンフラッグ",
    ),
    _thing(
        "frog.png",
        "Toys & Games > Toys > Bath Toys > Floating Animals",
        "Water Squirters|Bath Books|Toy Boats",
        "bath frog|grenouille de bain|Badefrosch|お風呂のカエル",
    ),
    _thing(
        "gem.png",
        "Apparel & Accessories > Jewelry > Loose Stones > Red Gemstones",
        "Diamonds|Pearls|Blue Gemstones",
        "red gemstone|pierre rouge taillée|roter Edelstein|赤い宝石",
    ),
    _thing(
        "key.png",
        "Hardware > Locks & Keys > Key Blanks",
        "Padlocks|Key Caps|Door Locks",
        "blue key blank|ébauche de clé bleue|blauer Schlüsselrohling|青いキーブランク",
    ),
    _thing(
        "mushroom.png",
        "Home & Garden > Lawn & Garden > Gardening > Garden Figures > Mushrooms",
        "Gnomes|Animals|Bird Baths",
        "garden mushroom|champignon décoratif|Gartenpilz|ガーデンきのこ",
    ),
    _thing(
        "rocket.png",
        "Toys & Games > Toys > Flying Toys > Toy Spacecraft",
        "Kites|Toy Gliders|Air & Water Rockets",
        "toy spaceship|vaisseau spatial jouet|Spielzeug-Raumschiff|おもちゃの宇宙船",
    ),
    _thing(
        "star.png",
        "Home & Garden > Decor > Seasonal & Holiday Decorations > Holiday Ornaments > Stars",
        "Baubles|Garlands|Bells",
        "yellow star ornament|étoile jaune à suspendre|gelber Weihnachtsstern|星のオーナメント",
    ),
    _thing(
        "tank.png",
        "Toys & Games > Toys > Play Vehicles > Toy Tanks",
        "Toy Cars|Toy Trains|Toy Trucks & Construction Vehicles",
        "toy tank|char d'assaut jouet|Spielzeugpanzer|おもちゃの戦車",
    ),
)
BRANDS: Final = ("Alderholm", "Brás & Filhos", "Kōen Works", "Norrsken", "Ørsted Lane", "Wexley's", "")
CANDIDATES: Final = (8, 9)
"""How many categories a row offers, the true one among them."""
SECONDHAND_SHARE: Final = 0.05

_SALES: Final = (
    "The {name} by {maker}, model {number}. Made to last, packed with care, sent within two days.",
    "Notre {name}, modèle {number} de {maker} : fabriqué avec soin, livré en deux jours, retour gratuit à l'été.",
    "{name} von {maker}, Modell {number}. Sorgfältig gefertigt, größengeprüft, in zwei Tagen bei dir zu Hause.",
    "{maker}の{name}、型番{number}。丁寧に作られ、二日以内に発送します。",
    '<div class="product-info"><style>.product-info{{color:#333}}</style><h2>{name}</h2><ul>'
    "<li>Model&nbsp;{number}</li><li>By {maker}</li></ul><script>track('{number}');</script></div>",
    '<p style="margin:0">New &amp; boxed: <b>{name}</b> ({number})<br/>Brand: {maker} &mdash; 5 ★ of 5 🎁</p>',
)
_USED: Final = " Second-hand: used, with light marks, tested and cleaned."
_KINDS: Final = ("Classic", "Mini", "Deluxe", "Édition été", "neu", "限定")


def product(rng: random.Random, number: int) -> Product:
    """A product drawn at random; ``number`` makes it unlike all others."""
    thing = rng.choice(THINGS)
    brand = rng.choice(BRANDS)
    used = rng.random() < SECONDHAND_SHARE
    language = rng.randrange(len(thing.names))
    model = f"{rng.choice('ABCDEFGH')}-{number:06d}"
    text = rng.choice(_SALES).format(name=thing.names[language], maker=brand or "an unnamed workshop", number=model)
    return Product(
        picture=thing.picture,
        title=" ".join(filter(None, (brand, thing.names[language], rng.choice(_KINDS), model))),
        description=text + (_USED if used else ""),
        categories=_offered(rng, thing),
        category=thing.category,
        brand=brand,
        is_secondhand=used,
    )


def _offered(rng: random.Random, thing: Thing) -> tuple[str, ...]:
    """The true category somewhere among near ones and those of other things."""
    far = [other.category for other in THINGS if other is not thing]
    offered = [*thing.near, *rng.sample(far, rng.choice(CANDIDATES) - 1 - len(thing.near))]
    rng.shuffle(offered)
    offered.insert(rng.randrange(len(offered) + 1), thing.category)
    return tuple(offered)
