"""Seeded inputs in the regimes that every oracle offers: which elements are how large.

A regime is a matrix of amplitudes that multiplies normal values. Tensors that meet element by
element (an input and its residual) share one matrix, so that a block of zeros is zero in their sum
too.

| regime | amplitudes |
|---|---|
| normal | 1 |
| outliers | 1, and 1,000 in one column of each even row, in 16 columns of each odd one |
| zero_blocks | 1, with whole rows, blocks of 128 and blocks of 16 that are 0 |
| tiny, huge | one factor for all, chosen by the problem |
| mixed | a power of two from 2^-12 to 2^12 for each block of 16 |
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from .row_chunks import BLOCK_ELEMENTS, row_chunks
from .wide_work import run_wide, slices

Float32s = npt.NDArray[np.float32]

_BLOCK = 16  # the smallest block that shares a scale (nvfp4)
_OUTLIER = 1000.0


@dataclass(frozen=True)
class Magnitudes:
    """Amplitudes of the regimes `tiny` and `huge`, which depend on the operator."""

    tiny: float
    huge: float


def draw_values(
    rng: np.random.Generator, shape: tuple[int, int], amplitudes: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return normal values of `shape` (rows, columns) times `amplitudes`.

    A large matrix is drawn by several threads, each chunk of rows from a generator of its own that
    `rng` spawns: the same seed gives the same values, however many threads there are.
    """
    spread = np.broadcast_to(amplitudes, shape)

    def draw(own: np.random.Generator, block: slice, values: Float32s) -> None:
        _fill_with_normal(own, values.reshape(-1))
        values *= spread[block]

    return _drawn_wide(rng, shape, draw)


def draw_uniform(
    rng: np.random.Generator, shape: tuple[int, int], low: float, high: float
) -> npt.NDArray[np.float32]:
    """Return values of `shape` spread evenly from `low` to `high`, by threads as `draw_values`."""

    def draw(own: np.random.Generator, _: slice, values: Float32s) -> None:
        own.random(out=values, dtype=np.float32)
        values *= np.float32(high - low)
        values += np.float32(low)

    return _drawn_wide(rng, shape, draw)


def _drawn_wide(
    rng: np.random.Generator,
    shape: tuple[int, int],
    draw: Callable[[np.random.Generator, slice, Float32s], None],
) -> Float32s:
    """Return a matrix whose blocks of rows `draw` fills in place, given their generator."""
    values = np.empty(shape, dtype=np.float32)
    chunks = row_chunks(*shape)
    generators = rng.spawn(len(chunks)) if len(chunks) > 1 else [rng]
    own = {chunk.start: one for chunk, one in zip(chunks, generators, strict=False)}

    def fill(chunk: slice) -> None:
        for block in slices(chunk.stop, BLOCK_ELEMENTS // max(1, shape[1]), chunk.start):
            draw(own[chunk.start], block, values[block])

    run_wide(fill, chunks)
    return values


def _fill_with_normal(rng: np.random.Generator, values: npt.NDArray[np.float32]) -> None:
    """Fill a contiguous array with standard normal values.

    numpy's own take three times as long, most of the time of a draw. Here a radius and an angle of
    16 bits each are looked up. Of the outermost radii, one in 2^16, 32 bits more decide, so that
    nobody knows the largest of millions beforehand.

    Source: Box and Muller, "A Note on the Generation of Random Normal Deviates", Annals of
    Mathematical Statistics 29(2), 1958.
    """
    radii, cosines, sines = _normal_tables()
    for part in slices(values.size, 2 * _PAIRS):
        pairs = -(-values[part].size // 2)
        bits = rng.integers(0, 1 << 64, -(-pairs // 2), dtype=np.uint64).view(np.uint16)
        places, angles = bits[:pairs], bits[pairs : 2 * pairs]
        radius = np.take(radii, places, mode="wrap")
        if not places.all():
            outermost = np.flatnonzero(places == 0)
            share = (rng.integers(0, 1 << 32, outermost.size) + 0.5) / (1 << 48)
            radius[outermost] = np.sqrt(-2 * np.log(share))
        first, second = values[part][:pairs], values[part][pairs:]
        np.multiply(radius, np.take(cosines, angles, mode="wrap"), out=first)
        rest = slice(second.size)
        np.multiply(radius[rest], np.take(sines, angles[rest], mode="wrap"), out=second)


_PAIRS = 1 << 14  # at once; the values of a seed depend on it


@cache
def _normal_tables() -> tuple[Float32s, Float32s, Float32s]:
    """Return a radius for each probability of 16 bits, and cosine and sine of 2^16 angles."""
    share = (np.arange(1 << 16) + 0.5) / (1 << 16)
    radii, turns = np.sqrt(-2 * np.log(share)), 2 * np.pi * share
    radii, cosines, sines = (a.astype(np.float32) for a in (radii, np.cos(turns), np.sin(turns)))
    return radii, cosines, sines


def _outliers(rng: np.random.Generator, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    """Give even rows one dominating value, odd rows a few that matter alike.

    A reduction that leaves columns out misses a sixteenth of an odd row's sum of squares where it
    leaves out an outlier. Their columns differ from row to row, so that the rows together cover as
    many columns as they can, the first and the last 16 in every odd row.
    """
    rows, columns = shape
    amplitudes = np.ones(shape, dtype=np.float32)
    amplitudes[np.arange(rows), rng.integers(0, columns, rows)] = _OUTLIER
    odd = np.arange(1, rows, 2)
    if columns < 2 * _BLOCK or not odd.size:
        return amplitudes
    amplitudes[odd] = 1.0
    spread = _BLOCK - 2
    inner = np.concatenate(
        [rng.permutation(columns) for _ in range(-(-odd.size * spread // columns))]
    )[: odd.size * spread]
    amplitudes[np.repeat(odd, spread), inner] = _OUTLIER
    amplitudes[odd, rng.integers(0, _BLOCK, odd.size)] = _OUTLIER
    amplitudes[odd, columns - 1 - rng.integers(0, _BLOCK, odd.size)] = _OUTLIER
    return amplitudes


def _zero_blocks(rng: np.random.Generator, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    rows, columns = shape
    blocks = -(-columns // _BLOCK)
    amplitudes = np.ones((rows, blocks), dtype=np.float32)
    for width, probability in ((_BLOCK, 0.2), (128, 0.1), (columns, 0.1)):
        is_zero = rng.random((rows, -(-columns // width))) < probability
        if is_zero.size > 1:  # the only block of a tensor may be zero, but need not
            is_zero[rng.integers(0, rows), rng.integers(0, is_zero.shape[1])] = True
        amplitudes[np.repeat(is_zero, -(-width // _BLOCK), axis=1)[:, :blocks]] = 0.0
    return np.repeat(amplitudes, _BLOCK, axis=1)[:, :columns]


def _mixed(rng: np.random.Generator, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    rows, columns = shape
    exponents = rng.integers(-12, 13, (rows, -(-columns // _BLOCK))).astype(np.float32)
    return np.repeat(np.exp2(exponents), _BLOCK, axis=1)[:, :columns]


def _uniform(amplitude: float) -> npt.NDArray[np.float32]:
    return np.full((1, 1), amplitude, dtype=np.float32)


_Draw = Callable[[np.random.Generator, tuple[int, int], Magnitudes], npt.NDArray[np.float32]]
_AMPLITUDES: dict[str, _Draw] = {
    "normal": lambda rng, shape, magnitudes: _uniform(1.0),
    "outliers": lambda rng, shape, magnitudes: _outliers(rng, shape),
    "zero_blocks": lambda rng, shape, magnitudes: _zero_blocks(rng, shape),
    "tiny": lambda rng, shape, magnitudes: _uniform(magnitudes.tiny),
    "huge": lambda rng, shape, magnitudes: _uniform(magnitudes.huge),
    "mixed": lambda rng, shape, magnitudes: _mixed(rng, shape),
}
REGIMES = tuple(_AMPLITUDES)
"""Input distributions that every problem provides; magnitudes stay within 2^-50 to 2^50. A seed's
inputs depend on the place of the regime: a new one comes last."""


def draw_amplitudes(
    rng: np.random.Generator, shape: tuple[int, int], regime: str, magnitudes: Magnitudes
) -> npt.NDArray[np.float32]:
    """Return the amplitudes of `regime`, of `shape` (rows, columns) or broadcastable to it.

    Raises:
        ValueError: `regime` is not one of `REGIMES`.
    """
    if regime not in _AMPLITUDES:
        raise ValueError(f"unknown regime {regime!r}; allowed: {', '.join(REGIMES)}")
    return _AMPLITUDES[regime](rng, shape, magnitudes)
