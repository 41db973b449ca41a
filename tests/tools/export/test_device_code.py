"""The author's code on its way into an export."""

import re

import pytest

from kopt.config.errors import ToolError
from kopt.tools.cuda.include_tree import kopt_headers
from kopt.tools.export.device_code import device_code, without_simulator

HEADER = "/* kopt: 1\nfamily: other\nlaunch: []\n*/\n"


@pytest.mark.parametrize("name", sorted(kopt_headers()))
def test_no_header_speaks_of_the_simulator(name: str) -> None:
    text = without_simulator(kopt_headers()[name].decode())
    assert not re.search("sim_|KOPT_SIM|CPU bod", text)
    opened = len(re.findall(r"^#if", text, re.MULTILINE))
    assert opened == len(re.findall(r"^#endif", text, re.MULTILINE))


def test_the_branch_behind_the_simulators_becomes_the_first() -> None:
    text = (
        "#if defined(KOPT_SIM)\na\n#elif X >= 1\nb\n#else\nc\n#endif\n"
        "#if !defined(KOPT_SIM)\nd\n#else\ne\n#endif\n#if Y\nf\n#else\ng\n#endif\n"
    )
    kept = "#if X >= 1\nb\n#else\nc\n#endif\nd\n#if Y\nf\n#else\ng\n#endif\n"
    assert without_simulator(text) == kept


def test_includes_go_to_the_front_and_linkage_is_cpp() -> None:
    source = (
        HEADER + "#include <cuda_bf16.h>\n#include <kopt/griddepcontrol.cuh>\n"
        'extern "C" __global__ void one() {}\n'
        'extern "C" {\n__global__ void two() {}\n}\n'
    )
    code = device_code(source)
    assert code.includes == ("<cuda_bf16.h>", '"kopt/griddepcontrol.cuh"')
    assert code.text == ('__global__ void one() {}\nextern "C++" {__global__ void two() {}\n}\n')


@pytest.mark.parametrize("name", ["bulk_copy.cuh", "cluster_exchange.cuh"])
def test_headers_bring_the_headers_that_they_include(name: str) -> None:
    code = device_code(HEADER + f"#include <kopt/{name}>\n")
    assert sorted(code.headers) == sorted([name, "mbarrier.cuh"])
    assert '#include "mbarrier.cuh"' in code.headers[name]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("#define FAST 1\n#include <cuda_fp8.h>\n", "after #define FAST"),
        ("#if BLOCK > 1\n#include <cuda_fp8.h>\n#endif\n", "inside #if"),
    ],
)
def test_an_include_that_would_change_its_meaning_is_refused(lines: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        device_code(HEADER + lines)


def test_wide_accesses_ask_for_wide_alignment() -> None:
    assert device_code(HEADER + "f(kopt::load_32(p));").alignment_bytes == 32
    assert device_code(HEADER + "f(kopt::load_streaming_16(p));").alignment_bytes == 16
