"""What is said of each suspect, and the strategy families that address it."""

from dataclasses import dataclass

from kopt.kernels.profile_result import SuspectName


@dataclass(frozen=True)
class SuspectWords:
    """A sentence and families."""

    statement: str
    families: tuple[str, ...]


SUSPECTS: dict[SuspectName, SuspectWords] = {
    "memory_latency": SuspectWords(
        "Threads wait for data from memory; more bytes in flight and shorter dependent chains"
        " help.",
        ("ilp_unroll", "vectorization", "async_pipeline", "reduction"),
    ),
    "memory_bandwidth": SuspectWords(
        "DRAM is busy moving bytes; only fewer bytes help.",
        ("pass_fusion", "register_caching", "cache_policy"),
    ),
    "l2_bandwidth": SuspectWords(
        "L2, or the way from it into the busiest SM, is busy; fewer or better coalesced accesses"
        " help.",
        ("layout", "vectorization", "smem_tiling"),
    ),
    "launch_latency": SuspectWords(
        "Empty launches take that time; only fewer or earlier ones help.",
        ("pass_fusion", "grid_shape"),
    ),
    "instruction_issue": SuspectWords(
        "Warps are busy with instructions; fewer or cheaper ones help.",
        ("fp4_intrinsics", "packed_simd", "fast_math", "algebra"),
    ),
    "code_fetch": SuspectWords(
        "Warps wait for machine code that the SM has not had yet; shorter code, less unrolling and"
        " more blocks for each SM help.",
        ("coarsening", "algebra"),
    ),
    "several_launches": SuspectWords(
        "Each further launch costs its start and sends what lies between through memory.",
        ("pass_fusion",),
    ),
    "uncoalesced_access": SuspectWords(
        "Warps touch more 32-byte sectors than coalesced accesses to the same bytes would.",
        ("layout", "vectorization"),
    ),
    "repeated_reads": SuspectWords(
        "Blocks load what they have loaded before.",
        ("register_caching", "smem_tiling", "pass_fusion"),
    ),
    "narrow_access": SuspectWords(
        "Loads and stores are narrower than 16 bytes: more instructions, fewer bytes in flight.",
        ("vectorization",),
    ),
    "bank_conflicts": SuspectWords(
        "Lanes of a warp meet in banks of the shared memory.",
        ("bank_conflicts", "layout"),
    ),
    "spills": SuspectWords(
        "Registers are spilled to local memory, or an array lies there.",
        ("launch_bounds", "coarsening"),
    ),
    "low_occupancy": SuspectWords(
        "Registers or shared memory keep blocks from being resident together.",
        ("launch_bounds", "grid_shape"),
    ),
    "few_blocks": SuspectWords(
        "The SMs have unlike shares of the blocks: some have none, or one less than others.",
        ("grid_shape", "thread_utilization"),
    ),
    "many_blocks": SuspectWords(
        "Starting small blocks one after the other takes longer than their work.",
        ("grid_shape", "coarsening"),
    ),
    "barriers": SuspectWords(
        "Threads wait for each other at block-wide barriers.",
        ("reduction",),
    ),
    "cluster_exchange": SuspectWords(
        "Blocks of a cluster wait for what the others send.",
        ("reduction", "grid_shape"),
    ),
    "trigger_latency": SuspectWords(
        "The next launch may start late: an earlier griddepcontrol.launch_dependents lets it wait"
        " where this one works.",
        ("grid_shape",),
    ),
}
_ONE_LAUNCH = SuspectWords(
    "An empty launch takes that time; little is left beyond an earlier start (programmatic"
    " dependent launch, PDL).",
    ("grid_shape",),
)


def words_of(name: SuspectName, launches: int) -> SuspectWords:
    """Return what is said of a suspect of a plan with so many launches."""
    return _ONE_LAUNCH if name == "launch_latency" and launches == 1 else SUSPECTS[name]
