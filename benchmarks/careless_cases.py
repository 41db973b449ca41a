"""The table of careless calls: words, what goes wrong around them, and the answer that is due."""

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

GOOD = 0.95
"""The share that must be answered as it should be."""
_ID = "silu_and_mul_b8xh14336"
_REFERENCE = Path(__file__).parents[1] / "kernels" / "problems" / "silu_and_mul" / "reference.cu"


_EXTENSION = """#include <torch/extension.h>
torch::Tensor forward(torch::Tensor x) { return x; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
"""


@dataclass(frozen=True)
class Case:
    """One call."""

    line: str
    """The call as it is typed, without `kopt`; with `shell` it is a whole line for bash."""
    code: int
    """The exit code of the documents."""
    says: str
    """What the answer must name: a way on, or the thing that is wrong."""
    shell: str = ""
    set: dict[str, str] = field(default_factory=dict[str, str])
    """Environment; `unset` takes a variable away."""
    lines: int = 3
    """Most lines on stderr."""

    @property
    def words(self) -> list[str]:
        """The words behind `kopt`."""
        return shlex.split(self.line)

    @property
    def name(self) -> str:
        """The call as a reader would type it."""
        before = "".join(f"{name}={text} " for name, text in self.set.items())
        return f"{before}{self.shell or 'kopt ' + self.line}"


def write_mistakes(folder: Path) -> None:
    """Write the files that the calls name."""
    good = _REFERENCE.read_text("utf-8")
    (folder / "good.cu").write_text(good)
    (folder / "empty.cu").write_text("")
    (folder / "plain.cu").write_text("__global__ void k() {}\n")
    (folder / "binary.cu").write_bytes(bytes(range(256)))
    (folder / "syntax.cu").write_text(good.replace("threadIdx.x", "threadIdx.nothing"))
    (folder / "key.cu").write_text(good.replace("family:", "famly:", 1))
    (folder / "zero.cu").write_text(good.replace("256, 128", "0, 128"))
    (folder / "torch.cu").write_text(_EXTENSION)
    (folder / "huge.cu").write_bytes(b"/* kopt: 1 */" + b" " * (2 << 20))
    (folder / "dangling.cu").symlink_to("nowhere.cu")
    (folder / "broken.yaml").write_text("beam: {width: 2\n")
    (folder / "unknown.yaml").write_text("beam: {widht: 2}\n")
    (folder / "nothing.receipt.json").write_text("{}\n")
    (folder / "broken.receipt.json").write_text("{")
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("")
    (folder / "void").mkdir()
    (folder / "problems" / "half").mkdir(parents=True)
    (folder / "problems" / "half" / "problem.yaml").write_text("name: half\n")
    (folder / "secret").write_text("a-token-that-is-long-enough-to-be-one-0000\n")
    os.chmod(folder / "secret", 0o644)
    (folder / "nothing.py").write_text("def get_inputs():\n    return []\n")
    (folder / "taken").write_text("a file where a folder is wanted\n")


CASES = (
    # commands and their names
    Case("lst", 2, "list"),
    Case("chekc good.cu", 2, "check"),
    Case("CHECK good.cu", 2, "did you mean check"),
    Case("help nothing", 2, "list, show"),
    Case("--json list", 2, "--json"),
    Case("completion tcsh", 2, "bash"),
    # kernel ids
    Case("show silu_and_mul", 2, _ID),
    Case(f"show {_ID.upper()}", 2, _ID),
    Case("show", 2, "kopt show"),
    Case("show a b", 2, "kopt show"),
    Case("list nosuchkernel", 2, "known: "),
    Case("list --arch sm_1", 2, "H100"),
    Case("list --problems nowhere", 2, "nowhere"),
    Case("list --problems taken", 2, "taken"),
    Case("list --problems void", 2, "problem.yaml"),
    Case("list --problems problems", 2, "problem.yaml", lines=6),  # a line for each mistake
    Case("list --problems problems --problems void", 2, "--problems"),
    # candidate files
    Case(f"check missing.cu --kernel {_ID}", 2, "missing.cu"),
    Case(f"check void --kernel {_ID}", 2, "void"),
    Case(f"check dangling.cu --kernel {_ID}", 2, "dangling.cu"),
    Case(f"check binary.cu --kernel {_ID}", 2, "UTF-8"),
    Case(f"check huge.cu --kernel {_ID}", 2, "1048576"),
    Case(f"check empty.cu --kernel {_ID}", 1, "/* kopt: 1"),
    Case(f"check plain.cu --kernel {_ID}", 1, "/* kopt: 1"),
    Case(f"check torch.cu --kernel {_ID}", 2, "kopt review"),
    Case("check torch.cu", 2, "kopt review"),
    Case(f"check key.cu --kernel {_ID}", 1, "did you mean family"),
    Case(f"check zero.cu --kernel {_ID}", 1, "1 to 1024"),
    Case(f"compile syntax.cu --kernel {_ID}", 1, "nothing", lines=4),
    Case("check good.cu", 2, "--kernel ID"),
    Case("check", 2, "kopt check"),
    Case("check good.cu --kernel", 2, "kopt check --help"),
    Case(f"check good.cu good.cu --kernel {_ID}", 2, "kopt compile good.cu good.cu"),
    # values of options
    Case(f"check good.cu --kernel {_ID} --device gpu", 2, "cuda:0"),
    Case(f"check good.cu --kernel {_ID} --device cpu", 2, "sim"),
    Case(f"check good.cu --kernel {_ID} --device cuda", 3, "--device sim"),
    Case(f"check good.cu --kernel {_ID} --device cuda:0", 3, "--device sim"),
    Case(f"check good.cu --kernel {_ID} --device sim --sanitize", 2, "GPU"),
    Case(f"check good.cu --kernel {_ID} --level all", 2, "full"),
    Case(f"check good.cu --kernel {_ID} --seeds one", 2, "whole numbers"),
    Case(f"check good.cu --kernel {_ID} --tune BLOCK", 2, "NAME=NUMBER"),
    Case(f"check good.cu --kernel {_ID} --tune BLOK=128", 2, "BLOCK"),
    Case(f"check good.cu --kernel {_ID} --tune BLOCK=96", 2, "128"),
    Case(f"check good.cu --kernel {_ID} --tune BLOCK=-1", 2, "128"),
    Case(f"compile good.cu --kernel {_ID} --arch hopper", 2, "sm_90a"),
    Case(f"compile good.cu --kernel {_ID} --arch ''", 2, "sm_90a"),
    Case(f"compile good.cu missing.cu --kernel {_ID}", 2, "missing.cu"),
    # bench, promotion, receipts
    Case(f"bench good.cu --kernel {_ID} --promote --device sim", 3, "GPU"),
    Case(f"bench good.cu --kernel {_ID} --device cuda:7", 3, "--device sim"),
    Case(f"bench good.cu --kernel {_ID} --pairs 5", 2, "pairs"),
    Case(f"bench good.cu --kernel {_ID} --baseline cublas", 2, "library"),
    Case(f"bench good.cu --kernel {_ID} --baseline library --device sim", 2, "--baseline"),
    Case("bench", 2, "--all"),
    Case("bench --all --device sim", 3, "GPU"),
    Case(f"bench good.cu --kernel {_ID} --quick --promote", 2, "--promote"),
    Case("verify", 2, "kopt verify"),
    Case("verify nothing.receipt.json", 2, "nothing.receipt.json"),
    Case("verify broken.receipt.json", 2, "broken.receipt.json"),
    Case("verify good.cu", 2, "receipt"),
    Case("verify void", 2, "void"),
    Case("verify nvfp4_quantize_m128xk14336", 2, "winner"),
    Case(f"verify {_ID} --device cuda:0", 3, "driver"),
    Case(f"verify {_ID} --device sim", 3, "GPU"),
    # reviews and exports
    Case(f"review good.cu --kernel {_ID}", 2, "--claim"),
    Case(f"review good.cu --kernel {_ID} --claim fast", 2, "1.7x"),
    Case(f"review good.cu --kernel {_ID} --claim -2", 2, "claim"),
    Case(f"review missing.cu --kernel {_ID} --claim 2x", 2, "missing.cu"),
    Case("review torch.cu --claim 2x", 2, "--kernel ID"),
    Case("export", 2, "kopt export"),
    Case(f"export {_ID}", 2, "--as"),
    Case(f"export {_ID} --as triton", 2, "torch"),
    Case(f"export {_ID} --as torch -o full", 2, "full"),
    Case(f"export {_ID} --as torch -o taken", 2, "taken"),
    Case("export run-20200101-000000-000 --as torch", 2, "kopt run"),
    Case("export nvfp4_quantize_m128xk14336 --as torch", 2, "winner"),
    Case(f"export good.cu --as torch --kernel {_ID}", 2, "--arch"),
    # profiles
    Case(f"profile missing.cu --kernel {_ID}", 2, "missing.cu"),
    Case(f"profile good.cu --kernel {_ID} --tune every", 2, "NAME=NUMBER"),
    # runs and steps
    Case("run", 2, "--all"),
    Case(f"run {_ID}", 2, "--kernel ID"),
    Case(f"study --kernel {_ID} --no-models --target 95", 2, "95x or 95%"),
    Case(f"run --kernel {_ID} --budget 0", 2, "budget"),
    Case(f"run --kernel {_ID} --budget 5dollars", 2, "5usd"),
    Case(f"run --kernel {_ID} --beam-width 1000", 2, "64"),
    Case(f"run --kernel {_ID} --config broken.yaml", 2, "broken.yaml", lines=5),
    Case(f"run --kernel {_ID} --config unknown.yaml", 2, "width", lines=5),
    Case(f"run --kernel {_ID} --start missing.cu", 2, "missing.cu"),
    Case(f"run --kernel {_ID} --replay missing.jsonl", 2, "missing.jsonl"),
    Case(f"run --kernel {_ID} --record a --replay secret", 2, "one of them"),
    Case(f"run --all --kernel {_ID}", 2, "--all"),
    Case("run --resume run-1", 2, "run"),
    Case(f"run --kernel {_ID}", 2, "--budget", set={"ANTHROPIC_API_KEY": "sk-ant-none"}),
    Case("step", 2, "--kernel"),
    Case("step good.cu --run nothing", 2, "run"),
    Case(f"step torch.cu --kernel {_ID}", 2, "kopt review"),
    Case(f"run --kernel {_ID} --start torch.cu", 2, "kopt review"),
    Case(f"step --kernel {_ID} --budget much", 2, "budget"),
    Case("runs show", 2, "kopt runs show"),
    Case("runs show run-1", 2, "run"),
    Case("runs delete run-1", 2, "export, report, rm"),
    Case("runs rm", 2, "--older-than"),
    Case("runs rm --older-than yesterday", 2, "30d"),
    Case("view run-1", 2, "run"),
    Case("view --port 99999", 2, "65535"),
    Case("study", 2, "--kernel"),
    Case(f"study --kernel {_ID}", 3, "ANTHROPIC_API_KEY"),
    Case("study --resume study-1", 2, "study"),
    # knowledge and documents
    Case("kb show nostate", 2, "state"),
    Case("kb import missing.yaml", 2, "missing.yaml"),
    Case("kb import broken.yaml", 2, "broken.yaml"),
    Case("kb forget nothing", 2, "nothing"),
    Case("docs search ''", 2, "search"),
    Case("docs search x --source nowhere", 2, "docs"),
    Case("docs show nothing", 2, "kopt docs search"),
    # server, clients, the rest
    Case("serve --http --host 0.0.0.0", 2, "--token-file", lines=8),
    Case("serve --http --token-file secret --host 0.0.0.0 --allowed-host h", 2, "chmod 600"),
    Case("serve --port 9000", 2, "--http"),
    Case("serve --http --port 99999", 2, "65535"),
    Case("setup", 2, "claude"),
    Case("setup emacs", 2, "claude"),
    Case("setup claude --undo", 2, "nothing"),
    Case("setup claude codex", 2, "one client"),
    Case("selftest nosample", 2, "evil_"),
    Case("selftest --device cuda:0", 3, "driver"),
    Case("cache --clear everything", 2, "oracle"),
    Case("doctor all", 2, "kopt doctor --help"),
    Case("new", 2, "kopt new"),
    Case("new missing.py", 2, "missing.py"),
    Case("gpu stat", 2, "did you mean"),
    Case("gpu stop --device sim", 2, "cuda:N"),
    Case("gpu serve --host 0.0.0.0", 2, "--token-file", lines=6),
    Case("pool status --device cuda:0", 2, "ray://HOST:PORT"),
    Case(f"check good.cu --kernel {_ID} --device https://box/sim", 2, "its simulator"),
    Case("new nothing.py", 2, "class Model", lines=5),
    Case("new nothing.py --shape x=0,4", 2, "1 or more"),
    Case("new torch.nn:Linea --shape x=4", 2, "did you mean Linear", lines=5),
    Case("suite run void", 2, "suite.yaml"),
    Case("split void -o parts", 2, "kopt new"),
    Case("stitch void -o whole.cu", 2, "kopt split"),
    Case("import kernelbench void -o kb", 2, "void"),
    # environment
    Case("list", 2, "nowhere", set={"KOPT_PROBLEMS": "nowhere"}),
    Case(f"run --kernel {_ID}", 3, "KOPT_HOME", set={"KOPT_HOME": "/proc/kopt"}),
    Case(f"check good.cu --kernel {_ID}", 3, "KOPT_HOME", set={"KOPT_HOME": "taken"}),
    Case(f"check good.cu --kernel {_ID}", 3, "KOPT_NVCC", set={"KOPT_NVCC": "/no/nvcc"}),
    Case(f"check good.cu --kernel {_ID}", 3, "KOPT_CXX", set={"KOPT_CXX": "/bin/false"}),
    Case(f"check good.cu --kernel {_ID}", 2, "KOPT_JOBS", set={"KOPT_JOBS": "many"}),
    Case(f"check good.cu --kernel {_ID}", 2, "KOPT_SANDBOX", set={"KOPT_SANDBOX": "maybe"}),
    Case("list", 0, _ID, set={"HOME": "unset", "KOPT_HOME": "unset"}),
    Case("list", 0, _ID, set={"HOME": "", "KOPT_HOME": ""}),
    Case("list", 0, _ID, set={"COLUMNS": "7"}),
    Case("list", 0, _ID, set={"COLUMNS": "wide", "TERM": "nothing", "LC_ALL": "C"}),
    # streams
    Case("", 3, "stdout", shell="kopt list > /dev/full"),
    Case("", 0, "", shell="kopt list >&-"),
    Case("", 2, "", shell="kopt show nothing 2>&-"),
    Case("", 0, "kernel id", shell="kopt list | head -1"),
    Case("", 130, "", shell="timeout --preserve-status -s INT 2 kopt selftest --device sim"),
)
