"""Machine code in words."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.cuda.nvdisasm import list_instructions, parse_listing, run_nvdisasm
from kopt.tools.cuda.toolchain import FoundToolchain
from support.cuda_sources import cubin_of

COPY = 'extern "C" __global__ void copy(const float4* a, float4* b) { b[threadIdx.x] = a[1]; }'


def _function(name: str, start: int, *instructions: dict[str, str]) -> dict[str, object]:
    return {"function-name": name, "start": start, "sass-instructions": list(instructions)}


def test_predicates_stand_before_and_padding_is_left_out() -> None:
    document: list[object] = [
        {},
        [
            _function("k", 0, {"predicate": "@!P0", "opcode": "EXIT"}),
            _function("called", 64, {"opcode": "RET.REL"}, {"opcode": "NOP"}, {"opcode": "NOP"}),
        ],
    ]
    assert parse_listing(json.dumps(document)) == {"k": ("@!P0 EXIT", "RET.REL")}


@pytest.mark.slow  # compiles and disassembles
def test_wide_accesses_of_a_cubin_are_listed(settings: Settings, toolchain: FoundToolchain) -> None:
    listing = list_instructions(cubin_of(COPY, settings, "sm_90a"), toolchain, settings)
    assert listing is not None
    opcodes = [instruction.split()[0] for instruction in listing["copy"]]
    assert "LDG.E.128.CONSTANT" in opcodes or "LDG.E.128" in opcodes
    assert "STG.E.128" in opcodes and opcodes[-1] != "NOP"


def test_machine_code_is_read_once(
    settings: Settings, toolchain: FoundToolchain, tmp_path: Path
) -> None:
    program = tmp_path / "nvdisasm"
    program.write_text('#!/bin/sh\necho "$1 of $(cat "$2")"\n', "utf-8")
    program.chmod(0o755)
    own = replace(toolchain, nvdisasm=program)

    def printed(cubin: bytes, *options: str) -> str | None:
        return run_nvdisasm(cubin, own, settings, options)

    assert printed(b"one", "-json") == "-json of one\n"
    program.write_text('#!/bin/sh\necho "anew: $1 of $(cat "$2")"\n', "utf-8")
    assert printed(b"one", "-json") == "-json of one\n"
    assert printed(b"one", "-gi") == "anew: -gi of one\n"
    assert printed(b"two", "-json") == "anew: -json of two\n"
