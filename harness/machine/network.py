"""The host's network cards: those with a device behind them, never their names' addresses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.machine.facts import Fact, Facts, Unreadable, counted, told

KEYS = ("host_networking", "host_network_card_count")
SYSFS = Path("/sys/class/net")

_LINKS = {"1": "Ethernet", "32": "InfiniBand"}  # ARPHRD_ETHER, ARPHRD_INFINIBAND of linux/if_arp.h


@dataclass(frozen=True, slots=True)
class Card:
    """One network card. ``mbit_s`` is None where the driver does not report a speed."""

    link: str
    driver: str | None
    up: bool
    mbit_s: int | None


def read_network() -> Facts:
    """Facts of the cards of this machine. Raises Unreadable where only virtual interfaces are to be seen."""
    return facts_of(read_cards(SYSFS))


def read_cards(sysfs: Path) -> list[Card]:
    """The cards below ``/sys/class/net``; interfaces without a device (bridges, veth, loopback) are none."""
    states = psutil.net_if_stats()
    cards = []
    for interface in sorted(sysfs.iterdir()):
        if not (interface / "device").exists():
            continue
        link = _LINKS.get((interface / "type").read_text().strip())
        if link is None:
            continue
        driver = interface / "device" / "driver"
        state = states.get(interface.name)
        speed = state.speed if state is not None and 0 < state.speed < 0xFFFF_FFFF else None
        up = state is not None and state.isup
        cards.append(Card(link, driver.resolve().name if driver.exists() else None, up, speed or None))
    return cards


def facts_of(cards: list[Card]) -> Facts:
    """Facts under the official keys: the links that are up, and all the cards. Raises Unreadable without a card."""
    if not cards:
        raise Unreadable("no network card is to be seen here (virtual interfaces only)")
    up = [_name(card) for card in cards if card.up]
    links = ", ".join(dict.fromkeys(up)) or None
    return {
        "host_networking": told(links, "psutil and sysfs: cards that are up"),
        "host_network_card_count": Fact(counted(_name(card) for card in cards), "sysfs: cards with a device"),
    }


def _name(card: Card) -> str:
    speed = None if card.mbit_s is None else f" {card.mbit_s / 1000:g} Gb/s"
    return f"{card.link}{speed or ''}" + (f" ({card.driver})" if card.driver else "")
