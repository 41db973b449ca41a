"""Several threads do to large arrays what one does to small ones."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels import wide_work
from kopt.kernels.wide_work import copy_wide, count_differing, fill_wide

SIZES = (0, 1, 7, 64, 1000, 4099)


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def small_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a few hundred bytes a large array."""
    monkeypatch.setattr(wide_work, "PIECE_BYTES", 96)
    monkeypatch.setattr(wide_work, "BLOCK_BYTES", 24)
    monkeypatch.setattr(wide_work, "threads", lambda: request.param)


def _random(size: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("size", SIZES)
def test_every_differing_byte_is_counted(size: int) -> None:
    one = _random(size)
    assert count_differing(one, one.copy()) == 0
    for stride in (1, 5, 97):
        other = one.copy()
        other[::stride] ^= 0x10
        assert count_differing(one, other) == -(-size // stride)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("offset", [1, 3, 8])
def test_ranges_may_begin_anywhere(offset: int) -> None:
    one = _random(4099)
    other = one.copy()
    other[-1] ^= 1
    assert count_differing(one[offset:], other[offset:]) == 1


def test_ranges_of_different_sizes_are_not_compared() -> None:
    with pytest.raises(ValueError, match="5 bytes are compared with 4"):
        count_differing(_random(5), _random(4))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 700), (700, 1), (5, 7, 11), (2, 999)])
def test_an_array_of_any_shape_is_copied(shape: tuple[int, ...]) -> None:
    source = np.arange(np.prod(shape, dtype=int), dtype=np.uint16).reshape(shape)
    target: npt.NDArray[Any] = np.zeros_like(source)
    copy_wide(target, source)
    assert np.array_equal(target, source)


@pytest.mark.usefixtures("small_pieces")
def test_rows_of_other_strides_are_copied() -> None:
    source = np.arange(6000, dtype=np.uint32).reshape(40, 150)
    target = np.zeros((150, 40), dtype=np.uint32)
    copy_wide(target.T[3:], source[3:])
    assert np.array_equal(target.T[3:], source[3:])
    assert not target.T[:3].any()


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("size", SIZES)
def test_all_of_a_range_and_nothing_beside_it_is_filled(size: int) -> None:
    memory = np.zeros(size + 2, dtype=np.uint8)
    fill_wide(memory[1:-1], 0xA5)
    assert memory.tolist() == [0, *[0xA5] * size, 0]
