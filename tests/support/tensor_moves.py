"""The forms of tcgen05.ld and .st, with what the PTX ISA says that each lane gets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .sim_run import Array, SimCase
from .tensor_layouts import LANES, SHAPES, fragment
from .tensor_programs import HELPERS

FIRST_COLUMN, COLUMNS = 8, 512
_PATTERN = np.random.default_rng(5).integers(0, 1 << 32, (LANES, COLUMNS), dtype=np.uint32)


@dataclass(frozen=True)
class TensorMoveRow:
    """One form of tcgen05.ld or .st."""

    stores: bool
    shape: str
    times: int
    packed: bool = False
    half: int = 0
    """1: of the upper 16 lanes of each quarter."""

    @property
    def name(self) -> str:
        """The opcode with its modifiers."""
        what, pack = ("st", ".unpack::16b") if self.stores else ("ld", ".pack::16b")
        of_half = " upper" if self.half else ""
        words = f"{self.shape}.x{self.times}{pack if self.packed else ''}.b32"
        return f"tcgen05.{what}.sync.aligned.{words}{of_half}"

    @property
    def registers(self) -> int:
        """How many a lane has."""
        return SHAPES[self.shape] * self.times

    @property
    def split(self) -> int:
        """The columns from one half of 16x32bx2 to the other."""
        return self.registers * (2 if self.packed else 1) + 5

    def cells(self, thread: int, register: int) -> list[tuple[int, int]]:
        """Return the lanes and columns that a thread of the block has in a register."""
        warp, lane = divmod(thread, 32)
        row, column = fragment(self.shape, lane, register)
        first = FIRST_COLUMN
        if self.shape == "16x32bx2" and lane >= 16:
            first += self.split
        row += 32 * warp + 16 * self.half
        if not self.packed:
            return [(row, first + column)]
        return [(row, first + 2 * column + high) for high in range(2)]

    @property
    def given(self) -> Array:
        """What the registers of a store hold: (128, registers)."""
        random = np.random.default_rng(self.registers)
        return random.integers(0, 1 << 32, (LANES, self.registers), dtype=np.uint32)

    @property
    def expected(self) -> Array:
        """Return what a load gives, by thread, or what tensor memory holds after a store."""
        if self.stores:
            return self._stored()
        found = np.zeros((LANES, self.registers), np.uint32)
        for thread in range(LANES):
            for i in range(self.registers):
                words = [int(_PATTERN[cell]) for cell in self.cells(thread, i)]
                both = sum((word & 0xFFFF) << 16 * n for n, word in enumerate(words))
                found[thread, i] = both if self.packed else words[0]
        return found

    def _stored(self) -> Array:
        found, given = _PATTERN.copy(), self.given
        for thread in range(LANES):
            for i in range(self.registers):
                value = int(given[thread, i])
                for high, cell in enumerate(self.cells(thread, i)):
                    found[cell] = value >> 16 * high & 0xFFFF if self.packed else value
        return found


_MOST = {shape: 128 // registers for shape, registers in SHAPES.items()}
MOVE_ROWS = (
    *(
        TensorMoveRow(False, shape, 1 << power)
        for shape in SHAPES
        for power in range(8)
        if 1 << power <= _MOST[shape]
    ),
    *(TensorMoveRow(True, shape, times) for shape in SHAPES for times in (1, 4)),
    *(
        TensorMoveRow(stores, shape, times, packed=True)
        for stores in (False, True)
        for shape in SHAPES
        for times in (1, 8)
    ),
    *(TensorMoveRow(stores, "16x256b", 2, half=1) for stores in (False, True)),
    TensorMoveRow(True, "32x32b", 128),
)
"""Every shape, at every repetition once."""

_FILL = (
    f"for (int c = 0; c < {COLUMNS}; ++c) store_word(base + c, in[threadIdx.x * {COLUMNS} + c]);",
    "wait_stores();",
)


def _block(number: int, row: TensorMoveRow, given: int, out: int) -> str:
    count, words = row.registers, f"{row.shape}.x{row.times}"
    split = f" {row.split}," if row.shape == "16x32bx2" else ""
    lines = [f"u32 r[{count}]; address += {row.half << 20 | FIRST_COLUMN};"]
    registers = ", ".join(f"%{n + row.stores}" for n in range(count))
    if row.stores:
        pack = ".unpack::16b" if row.packed else ""
        values = ", ".join(f'"r"(r[{n}])' for n in range(count))
        lines += [
            *_FILL,
            f"for (int i = 0; i < {count}; ++i) r[i] = in[{given} + threadIdx.x * {count} + i];",
            f'asm volatile("tcgen05.st.sync.aligned.{words}{pack}.b32 [%0],{split}'
            f' {{{registers}}};" :: "r"(address), {values} : "memory");',
            "wait_stores();",
            f"for (int c = 0; c < {COLUMNS}; ++c)"
            f" out[{out} + threadIdx.x * {COLUMNS} + c] = load_word(base + c);",
            "wait_loads();",
        ]
    else:
        pack, rest = ".pack::16b" if row.packed else "", f", {row.split}" if split else ""
        written = ", ".join(f'"=r"(r[{n}])' for n in range(count))
        lines += [
            f'asm volatile("tcgen05.ld.sync.aligned.{words}{pack}.b32 {{{registers}}},'
            f' [%{count}]{rest};" : {written} : "r"(address) : "memory");',
            "wait_loads();",
            f"for (int i = 0; i < {count}; ++i) out[{out} + threadIdx.x * {count} + i] = r[i];",
        ]
    return (
        f"__device__ void row_{number}(const u32* in, u32* out, u32 base) {{\n"
        f"  u32 address = base;\n  {chr(10).join(lines)}\n}}\n"
    )


def moves_case(rows: Sequence[TensorMoveRow]) -> SimCase:
    """Return one kernel of one warpgroup that runs every row; loads come first."""
    words, outputs = [_PATTERN.ravel()], 0
    blocks, calls = [HELPERS], list[str]()
    for number, row in enumerate(sorted(rows, key=lambda one: one.stores)):
        blocks.append(_block(number, row, sum(map(len, words)), outputs))
        calls.append(f"  row_{number}(in, out, base);")
        words.append(row.given.ravel())
        outputs += row.expected.size
    source = "".join(blocks) + (
        'extern "C" __global__ void __launch_bounds__(128) k(const u32* in, u32* out) {\n'
        "  __shared__ u32 place;\n  const u32 all = allocate(&place), base = quarter(all);\n"
        + "\n".join((*_FILL, *calls))
        + "\n  free_all(all);\n}"
    )
    return SimCase(
        source,
        inputs={"in": np.concatenate(words).view(np.int32)},
        outputs={"out": np.zeros(outputs, np.int32)},
        block=(LANES, 1, 1),
    )


def move_results(rows: Sequence[TensorMoveRow], out: Array) -> dict[str, Array]:
    """Return what each row left, by its name."""
    ordered = sorted(rows, key=lambda one: one.stores)
    ends = np.cumsum([row.expected.size for row in ordered])
    parts = np.split(out.view(np.uint32), ends[:-1])
    return {
        row.name: part.reshape(row.expected.shape) for row, part in zip(ordered, parts, strict=True)
    }
