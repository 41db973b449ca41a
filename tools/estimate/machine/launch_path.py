"""The warps of one SM on their way: the blocks of a launch that the busiest SM is given."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from kopt.kernels.plan import Launch
from kopt.tools.cuda.cubin import TABLE_BANK, WORD_BYTES

from .instructions import Instruction
from .lanes import LANES, MASK, WARP, Flags, Lanes, constant_key
from .moves import Place
from .warp_path import MAX_VISITS, Visit, WarpPath

MAX_BLOCKS = 8
"""Blocks that are followed, spread over those of the SM; the others go the way of the nearest."""
MAX_FOLLOWED = 100_000
"""Instructions of all followed warps; further warps and blocks go the way of those before."""
_BULK = frozenset({"UBLKCP", "UBLKRED", "UTMALDG", "UTMASTG", "UTMAREDG"})
_TENSOR_SHIFT = 36
"""Each buffer has 64 GiB of addresses of its own."""
_HOPPER = (0x0, 0x28)
_BLACKWELL = (0x360, 0x37C)
_BLACKWELL_PARAMETERS = 0x380
"""Where parameters begin in constant bank 0 from compute capability 10.0 on; and where the sizes of
block and grid stand, and the stack pointer, before that and from it on. Source: machine code that
CUDA 13.2 makes for each target."""
_SIZES = {"tensor": 8, "scratch": 8, "int64": 8, "int32": 4, "float32": 4, "tensor_map": 128}
_TENSOR_MAP_ALIGNMENT = 64


@dataclass(frozen=True)
class ConstantBank:
    """What the constant banks of a launch hold: its arguments, and the tables of its kernel."""

    words: Mapping[int, int]
    """By `constant_key`."""
    buffers: Mapping[int, str]
    """Names of tensors and scratch buffers by the upper bits of their addresses."""


def buffer_of(sector: int) -> int:
    """Return the upper bits of the addresses in a sector, by which its buffer is known."""
    return sector >> _TENSOR_SHIFT - 5


def constant_bank(launch: Launch, parameters: int, tables: bytes) -> ConstantBank:
    """Return the constants of a launch.

    Args:
        launch: Its arguments stand in bank 0 as C++ lays them out.
        parameters: Offset of the first parameter in the bank.
        tables: Bank 2 of its kernel.
    """
    sizes, stack = _BLACKWELL if parameters >= _BLACKWELL_PARAMETERS else _HOPPER
    words = {sizes + 4 * place: count for place, count in enumerate((*launch.block, *launch.grid))}
    words[stack] = 0  # of each thread's own memory
    words |= {
        constant_key(TABLE_BANK, WORD_BYTES * place): word
        for place, (word,) in enumerate(struct.iter_unpack("<I", tables))
    }
    buffers: dict[int, str] = {}
    offset = parameters
    for argument in launch.arguments:
        size = _SIZES[argument.kind]
        alignment = min(size, _TENSOR_MAP_ALIGNMENT)
        offset = -(-offset // alignment) * alignment
        if argument.kind in ("tensor", "scratch"):
            known = {name: number for number, name in buffers.items()}
            number = known.get(argument.name, len(buffers) + 1)
            buffers[number] = argument.name
            value: int | None = number << _TENSOR_SHIFT
        else:
            value = argument.value if isinstance(argument.value, int) else None
        if value is not None:
            words[offset] = value & MASK
            if size == 8:
                words[offset + 4] = value >> 32 & MASK
        offset += size
    return ConstantBank(words, buffers)


WarpVisits = tuple[Visit, ...]
BlockVisits = tuple[WarpVisits, ...]


@dataclass(frozen=True)
class LaunchPath:
    """What the warps of one SM do."""

    launch: Launch
    code: tuple[Instruction, ...]
    blocks: range
    """Blocks of the SM, in their order."""
    followed: Mapping[int, BlockVisits]
    """The visits of the warps of some of them."""
    bank: ConstantBank
    is_cut: bool
    """Whether a way was too long to be followed, or led where no code is known."""
    has_open_loop: bool
    """Whether a loop was met that data ends."""

    @property
    def grid_blocks(self) -> int:
        """Blocks of the whole launch."""
        return prod(self.launch.grid)

    @property
    def has_bulk_copies(self) -> bool:
        """Whether the code copies bytes past the registers, which no followed warp asks for."""
        return any(one.operation in _BULK for one in self.code)

    @property
    def asked_bytes(self) -> float:
        """Bytes of global memory that all threads ask for, as those that were followed do."""
        accesses = (
            visit.access
            for block in self.followed.values()
            for warp in block
            for visit in warp
            if visit.access is not None and visit.access.bytes and visit.access.sectors
        )
        return sum(access.bytes for access in accesses) * self.grid_blocks / len(self.followed)


@dataclass(frozen=True)
class Following:
    """How warps are followed."""

    most: int = MAX_FOLLOWED
    """Instructions, from which on warps and blocks go the way of those before."""
    takes_branches: bool = False
    """Whether branches ahead that depend on data are taken, not passed by."""


USUAL = Following()


def follow_launch(
    launch: Launch,
    code: tuple[Instruction, ...],
    bank: ConstantBank,
    sm_count: int,
    how: Following = USUAL,
) -> LaunchPath:
    """Follow the blocks of the busiest SM, every `sm_count`-th one.

    Args:
        launch: Its blocks are followed.
        code: Its kernel.
        bank: Its constants.
        sm_count: SMs of the GPU.
        how: For how long, and which way where data says.
    """
    blocks = range(0, prod(launch.grid), sm_count)
    count = min(len(blocks), MAX_BLOCKS)
    followed: dict[int, BlockVisits] = {}
    is_cut, is_open, left = False, False, how.most
    for number in (blocks[place * len(blocks) // count] for place in range(count)):
        warps: list[WarpVisits] = []
        for warp, place in enumerate(_warps(launch, number)):
            if left <= 0 and warps:
                warps.append(warps[-1])
                continue
            path = WarpPath(code, Lanes(bank.words, warp), *place, how.takes_branches)
            path.follow(min(MAX_VISITS, how.most))
            warps.append(tuple(path.visits))
            is_cut = is_cut or path.is_cut
            is_open = is_open or path.has_open_loop
            left -= len(path.visits)
        followed[number] = tuple(warps)
        if left <= 0:
            break
    return LaunchPath(launch, code, blocks, followed, bank, is_cut, is_open)


def _warps(launch: Launch, number: int) -> Iterator[tuple[Place, Flags]]:
    """Yield where the warps of a block are, and which of their lanes have a thread."""
    width, height, depth = launch.block
    across, down, _ = launch.grid
    block = (number % across, number // across % down, number // (across * down))
    threads = width * height * depth
    for first in range(0, threads, WARP):
        index = first + LANES
        ids = (index % width, index // width % height, index // (width * height))
        yield Place(ids, block, block[0] % launch.cluster[0]), np.less(index, threads)
