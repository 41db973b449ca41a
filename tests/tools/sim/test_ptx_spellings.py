"""Inline PTX that says one thing in several ways becomes the same C++."""

import pytest

from kopt.tools.sim.ptx.lowering import lower_ptx, unknown_instruction

BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
MULTICAST = f"{BULK}.multicast::cluster"


def _lowered(text: str) -> str:
    """Return a statement of `text` as C++; `%3` holds 64 bits, the others hold 32."""
    operands = '"+r"(a) : "r"(b), "r"(c), "l"(d)'
    source = f'void f() {{ asm volatile("{text}" : {operands}); }}'
    lowered = lower_ptx(source)
    assert lowered != source
    return lowered


@pytest.mark.parametrize(
    ("kind", "spellings", "scales"),
    [
        ("mxf8f6f4", ("", ".scale_vec::1X", ".block32"), 1),
        ("mxf4", ("", ".scale_vec::2X", ".block32"), 2),
        ("mxf4nvf4", (".scale_vec::2X", ".block32"), 2),
        ("mxf4nvf4", (".scale_vec::4X", ".block16"), 4),
    ],
)
def test_number_of_scales_is_said_by_either_word(
    kind: str, spellings: tuple[str, ...], scales: int
) -> None:
    lowered = {
        _lowered(
            "{.reg .pred p; setp.ne.u32 p, %0, 0; tcgen05.mma.cta_group::1."
            f"kind::{kind}.block_scale{word} [%0], %3, %3, %1, [%1], [%2], p;}}"
        )
        for word in spellings
    }
    (text,) = lowered
    assert f".scales = {scales}" in text


@pytest.mark.parametrize(
    "plain",
    [
        f"{BULK} [%0], [%3], %1, [%2];",
        f"{MULTICAST} [%0], [%3], %1, [%2], m;",
        "cp.async.bulk.global.shared::cta.bulk_group [%3], [%0], %1;",
    ],
)
def test_cache_policy_of_a_bulk_copy_changes_nothing(plain: str) -> None:
    declared = "{.reg .b16 m; mov.b16 m, 1; .reg .b64 policy;"
    policy = " createpolicy.fractional.L2::evict_first.b64 policy, 1.0;"
    hinted = plain.replace(" [", ".L2::cache_hint [", 1).replace(";", ", policy;")
    assert _lowered(f"{declared}{policy} {hinted}}}") == _lowered(f"{declared}{policy} {plain}}}")


@pytest.mark.parametrize("text", ["{ %s } %s", "{ %s } { %s }", "{ %s { %s } }", "{ { %s } %s }"])
def test_blocks_without_registers_change_nothing(text: str) -> None:
    both = ("membar.gl;", "add.u32 %0, %0, 1;")
    assert _lowered(text % both) == _lowered(" ".join(both))


@pytest.mark.parametrize("text", ["add.f32 %0, %0, 1;", "add.u32 %0, %0, 1.5;"])
def test_number_of_another_kind_than_the_instruction_stays(text: str) -> None:
    kind = "f" if ".f32" in text else "r"
    source = f'void f() {{ asm volatile("{text}" : "+{kind}"(a)); }}'
    assert lower_ptx(source) == source


def test_branch_out_of_a_statement_is_no_unknown_instruction() -> None:
    assert unknown_instruction("{ bra elsewhere; }") == ""
    assert unknown_instruction("{ bra elsewhere; vadd.u32.u32.u32 %0, %1, %1; }").startswith("vadd")
