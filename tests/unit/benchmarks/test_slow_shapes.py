"""The odd shapes are as long as the table says."""

from __future__ import annotations

import pytest

from benchmarks.compiler.slow_shapes import SHAPES, SIZE


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_100_kb(name: str) -> None:
    assert 0.9 * SIZE < len(SHAPES[name]()) <= 1.01 * SIZE
