"""What Spark was told to hold, it is told to let go of."""

from typing import Any

import pytest

from dbt.adapters.mzs3.spark.frames import persisted


class Frame:
    def __init__(self) -> None:
        self.held = 0

    def persist(self) -> "Frame":
        self.held += 1
        return self

    def unpersist(self) -> None:
        self.held -= 1


def test_a_frame_is_held_and_let_go_of_after_an_error_too() -> None:
    frame: Any = Frame()
    with pytest.raises(RuntimeError), persisted(frame) as held:
        assert held is frame
        assert frame.held == 1
        raise RuntimeError
    assert frame.held == 0
