"""`kopt gpu`: the resident evaluators of this machine's GPUs; started, shown, stopped."""

from kopt.server.lazy_group import LazyCommand, LazyGroup

COMMANDS = {
    "start": LazyCommand(
        "gpu_resident", "Keep a GPU's workers for the calls that follow.", "start"
    ),
    "status": LazyCommand("gpu_resident", "Who uses the GPUs, and who waits.", "status"),
    "serve": LazyCommand("gpu_serve", "A GPU of this machine for callers of others.", "serve"),
    "stop": LazyCommand("gpu_resident", "End the evaluators once their callers are done.", "stop"),
}

EPILOG = """\b
Examples:
  kopt gpu start --device cuda:0
  kopt gpu status
  kopt gpu stop --now

\b
A resident evaluator keeps what a call on a GPU starts with: worker processes, torch,
FlashInfer, CUDA contexts. The first call on a GPU starts it, and check, bench,
profile, step, run and serve use it; a promotion never does. It ends after 600 s
without a caller, or KOPT_GPU_IDLE_S; with KOPT_GPU_IDLE_S=0 calls start none.
Start, status and stop take --json. More: docs/resident.md."""

command = LazyGroup(
    COMMANDS,
    name="gpu",
    help="Keep a GPU's worker processes between calls, shared by all of them.",
    epilog=EPILOG,
)
