from __future__ import annotations

import threading
from pathlib import Path

from harness.benchmarks.making import alone


def test_the_second_is_told_of_it_and_waits(tmp_path: Path) -> None:
    place, waits, told, order = tmp_path / "store", threading.Event(), [], []

    def tell(line: str) -> None:
        told.append(line)
        waits.set()

    def second() -> None:
        with alone(place, tell):
            order.append("second")

    thread = threading.Thread(target=second)
    with alone(place, told.append):
        thread.start()
        assert waits.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert [str(place) in line for line in told] == [True]
