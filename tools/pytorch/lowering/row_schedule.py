"""How kernels of rows and tiles are written: the techniques applied, and the values tried.

A technique is called as in the knowledge base (search/knowledge/seed/techniques.yaml). All are
independent of each other and change how a row is made, never what is computed but for rounding, for
a hoisted divisor below 2^-128, whose reciprocal is infinite, and for products before a barrier that
leave the range of float32 where their factor would have kept them in it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class RowTechnique:
    """A change of how rows are made."""

    family: str
    """The strategy family that it belongs to (kernels/families.py)."""
    words: str
    """A clause that tells what it does."""
    needs_sm_90: bool = False
    is_for_few_rows: bool = False
    """Whether it pays only while rows are fewer than SMs."""


TECHNIQUES = {
    "split_rows": RowTechnique(
        "grid_shape",
        "several blocks share a row, so that few rows keep more SMs busy",
        is_for_few_rows=True,
    ),
    "cluster_sums": RowTechnique(
        "clusters",
        "the blocks of a cluster share a row and send each other their partial results",
        needs_sm_90=True,
        is_for_few_rows=True,
    ),
    "dependent_launch": RowTechnique(
        "pass_fusion",
        "the next launch starts before this one ends: at once, or once it has loaded",
        needs_sm_90=True,
    ),
    "early_stores": RowTechnique(
        "pass_fusion", "outputs that need no reduction are stored while the first is under way"
    ),
    "products_before_barrier": RowTechnique(
        "algebra",
        "while sums are under way, elements are multiplied by what is known, and magnitudes of"
        " groups compared",
    ),
    "streaming_access": RowTechnique(
        "cache_policy", "what is used once is stored, and perhaps loaded, past the caches"
    ),
    "fast_reciprocal": RowTechnique(
        "fast_math", "division, exp and square root are approximate instructions"
    ),
    "hoisted_factors": RowTechnique(
        "algebra", "what is the same for a whole row divides once, and elements are multiplied"
    ),
    "roles_by_block": RowTechnique(
        "divergence", "one launch makes all outputs, a range of blocks for each"
    ),
    "occupancy_bound": RowTechnique(
        "launch_bounds", "registers are bounded so that several blocks fit on an SM"
    ),
}
"""The techniques by their id, in the order in which they are tried."""
_MEANWHILE = ("early_stores", "products_before_barrier")
"""Techniques of what is done while a reduction is under way."""
_FEWER, _THREADS = (8, 16), (32, 64, 128, 256, 512, 1024)
"""Threads of a row: a part of a warp is enough where they tell each other nothing."""
_PER_THREAD, _USUAL_BLOCK = 16, 128
"""Elements of a row for each thread, and threads of a block at least, by default."""
_CLUSTERS = (4, 2, 8, 7, 5, 6, 3)
"""Blocks of a cluster that are tried first, if each of 128 threads has as many packs."""
_SHARED = 512
"""Elements of a row from which on several blocks may share it."""
_PACK = 8
"""Elements that a thread reads at a time, usually."""


@dataclass(frozen=True)
class Schedule:
    """The techniques of a kernel."""

    techniques: frozenset[str] = frozenset()

    def fitting(self, reduces: bool, elements: int) -> "Schedule":
        """Return the techniques that fit rows of so many elements, reduced or not."""
        unfit = {"split_rows"} if reduces else {"cluster_sums", *_MEANWHILE}
        unfit.add("roles_by_block")
        if elements < _SHARED:
            unfit |= {"split_rows", "cluster_sums"}
        return Schedule(self.techniques - unfit)

    def for_tiles(self, can_join: bool) -> "Schedule":
        """Return the techniques that fit kernels that make tiles, which one launch may make."""
        unfit = {"split_rows", "cluster_sums", *_MEANWHILE}
        if not can_join:
            unfit.add("roles_by_block")
        return Schedule(self.techniques - unfit)

    @property
    def by_operator(self) -> "Schedule":
        """The techniques of kernels that do not make rows."""
        return Schedule(self.techniques & {"fast_reciprocal"})

    @property
    def is_dependent(self) -> bool:
        """Whether it is launched before the kernel before it has ended."""
        return "dependent_launch" in self.techniques

    @property
    def is_split(self) -> bool:
        """Whether SPLIT blocks share a row."""
        return not self.techniques.isdisjoint(("split_rows", "cluster_sums"))

    @property
    def joins(self) -> bool:
        """Whether one launch makes all outputs."""
        return "roles_by_block" in self.techniques

    @property
    def stores_early(self) -> bool:
        """Whether outputs that need no reduction are stored before the first has ended."""
        return "early_stores" in self.techniques

    @property
    def keeps_products(self) -> bool:
        """Whether what needs no reduction is computed before the first has ended."""
        return "products_before_barrier" in self.techniques

    @property
    def streams(self) -> bool:
        """Whether loads and stores carry hints for caches."""
        return "streaming_access" in self.techniques

    @property
    def is_fast(self) -> bool:
        """Whether it is compiled with approximate functions."""
        return "fast_reciprocal" in self.techniques

    @property
    def hoists(self) -> bool:
        """Whether a division by what is the same for a row becomes a product."""
        return "hoisted_factors" in self.techniques

    @property
    def is_bounded(self) -> bool:
        """Whether several blocks are asked for on an SM."""
        return "occupancy_bound" in self.techniques


PLAIN = Schedule()


@dataclass(frozen=True)
class RowSizes:
    """What the values that are tried depend on."""

    elements: int
    """The elements of a row, at the workload where it is longest."""
    reduces: bool
    """Whether a reduction is over whole rows."""
    has_groups: bool
    writes_inputs: bool
    """Then a block has one row: spare threads would read what others write."""


def tried_values(sizes: RowSizes, schedule: Schedule) -> dict[str, tuple[int, ...]]:
    """Return the values of each tune parameter that are tried, the likely best first."""
    blocks = _split(sizes) if schedule.is_split else (1,)
    each = _PACK if schedule.is_split else _PER_THREAD
    wanted = max(1, sizes.elements // blocks[0] // each)
    is_alone = not (sizes.reduces or sizes.has_groups)
    threads = _FEWER + _THREADS if is_alone else _THREADS
    fitting = [one for one in threads if (blocks[0] - 1) * one < _packs(sizes)]
    usual = next((one for one in fitting if one >= wanted), fitting[-1])  # a default must fit
    place = threads.index(usual)
    near = (place, place - 1, place + 1, place - 2, place + 2)
    powers = [threads[one] for one in near if 0 <= one < len(threads)]
    tried = {"ROW": tuple(dict.fromkeys((*powers[:1], *_exact(sizes, blocks[0]), *powers[1:])))}
    rows = max(1, _USUAL_BLOCK // usual)
    has_one_row = schedule.is_split or sizes.writes_inputs
    counts = dict.fromkeys((rows, 1, 2, 4, 8, *(() if sizes.reduces else (2 * rows, rows // 2))))
    tried["ROWS"] = (1,) if has_one_row else tuple(one for one in counts if one)
    if schedule.is_split:
        tried["SPLIT"] = blocks
    return tried | _of_any_kernel(schedule)


def _of_any_kernel(schedule: Schedule) -> dict[str, tuple[int, ...]]:
    tried: dict[str, tuple[int, ...]] = {}
    if schedule.is_dependent:
        tried["TRIGGER"] = (1, 0)
    if schedule.streams:
        tried["HINT"] = (1, 2)
    if schedule.is_bounded:
        tried["MIN_BLOCKS"] = (2, 4, 1)
    return tried


def tried_tiles(schedule: Schedule) -> dict[str, tuple[int, ...]]:
    """Return the same for a kernel that makes tiles."""
    return {"BLOCK": (256, 128, 512), "PACKS": (4, 2, 1, 8)} | _of_any_kernel(schedule)


def tile_conditions(schedule: Schedule) -> list[str]:
    """Return what must hold for the values of a kernel that makes tiles."""
    return ["BLOCK * MIN_BLOCKS <= 2048"] if schedule.is_bounded else []


def _exact(sizes: RowSizes, blocks: int) -> list[int]:
    """Return numbers of threads that are no powers of two and have as many packs each."""
    packs = sizes.elements // _PACK // blocks
    fractions = [packs // share for share in (1, 2, 4) if packs % share == 0]
    fits = [one for one in fractions if one % 32 == 0 and 32 < one <= _THREADS[-1]]
    return [one for one in fits if one not in _THREADS]


def _split(sizes: RowSizes) -> tuple[int, ...]:
    """Return how many blocks share a row: a pack a thread, or a cluster where they talk."""
    packs = _packs(sizes)
    if sizes.reduces:
        counts = [one for one in _CLUSTERS if (one - 1) * _THREADS[0] < packs]
        return tuple(sorted(counts, key=lambda one: packs % (one * _USUAL_BLOCK) != 0)[:4])
    shares = dict.fromkeys(-(-packs // threads) for threads in (128, 64, 256, 32, 512))
    return tuple(one for one in shares if one > 1) or (1,)


def _packs(sizes: RowSizes) -> int:
    return -(-sizes.elements // _PACK)


def conditions(sizes: RowSizes, schedule: Schedule) -> list[str]:
    """Return what must hold for the values, in the header's expressions."""
    found = ["ROW * ROWS <= 1024"]
    if schedule.is_split:
        # A number, so that a choice fits all workloads or none.
        found.append(f"(SPLIT - 1) * ROW < {_packs(sizes)}")
    if schedule.is_bounded:
        found.append("ROW * ROWS * MIN_BLOCKS <= 2048")
    return found
