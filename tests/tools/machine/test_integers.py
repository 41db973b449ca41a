"""Integer instructions give what the hardware does: held against Python's integers."""

import random

import numpy as np
import pytest

from kopt.tools.estimate.machine.lanes import ALL, LANES, WARP, filled
from kopt.tools.estimate.machine.moves import effect_of
from support.machine_cases import carried_out, instruction

MASK = 0xFFFFFFFF
_RANDOM = random.Random(3)
A, B, C = (
    np.array([_RANDOM.getrandbits(32) for _ in range(WARP)], dtype=np.int64) for _ in range(3)
)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _values(formula: str) -> list[int]:
    """Return what a formula of `a`, `b` and `c` is in each lane, in Python's integers."""
    names = {"signed": _signed}
    lanes = (dict(zip("abc", map(int, words), strict=True)) for words in zip(A, B, C, strict=True))
    return [int(eval(formula, names, values)) for values in lanes]


def _word(text: str, name: str = "R0") -> list[int]:
    found = carried_out(text, {"R1": A, "R2": B, "R3": C}).word(name)
    assert found is not None
    return [int(word) for word in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IADD3 R0,R1,R2,R3", "a + b + c"),
        ("IADD3 R0,R1,-R2,R3", "a - b + c"),
        ("IADD3 R0,R1,~R2,RZ", "a + ~b"),
        ("IADD3.X R0,R1,-0x1,RZ,!PT,!PT", "a - 1"),
        ("VIADD R0,R1,-0x4", "a - 4"),
        ("IADD R0,R1,-R2", "a - b"),
        ("IMAD R0,R1,R2,R3", "a * b + c"),
        ("IMAD.HI.U32 R0,R1,R2,RZ", "a * b >> 32"),
        ("IMAD.HI R0,R1,R2,RZ", "signed(a) * signed(b) >> 32"),
        ("IMAD.HI.U32 R0,R1,R2,R2", "a * b + (c << 32 | b) >> 32"),
        ("LEA R0,R1,R2,0x4", "(a << 4) + b"),
        ("LEA.HI R0,R1,R2,RZ,0x4", "(a >> 28) + b"),
        ("LOP3.LUT R0,R1,R2,R3,0xc0,!PT", "a & b"),
        ("LOP3.LUT R0,R1,R2,R3,0xfe,!PT", "a | b | c"),
        ("LOP3.LUT R0,R1,R2,R3,0x96,!PT", "a ^ b ^ c"),
        ("SHF.L.U32 R0,R1,0x5,RZ", "a << 5"),
        ("SHF.R.U32.HI R0,RZ,0x7,R1", "a >> 7"),
        ("SHF.R.S32.HI R0,RZ,0x1f,R1", "signed(a) >> 31"),
        ("SHF.L.U64.HI R0,R1,0x3,R2", "(b << 32 | a) << 3 >> 32"),
        ("SHF.R.U64 R0,R1,0x3,R2", "(b << 32 | a) >> 3"),
        ("PRMT R0,R1,0x5410,R2", "a & 0xFFFF | b << 16"),
        ("VIMNMX R0,R1,R2,PT", "min(signed(a), signed(b))"),
        ("VIMNMX.U32 R0,R1,R2,!PT", "max(a, b)"),
        ("VIMNMX R0,PT,PT,R1,R2,PT", "min(signed(a), signed(b))"),
        ("VIADDMNMX.U32 R0,R1,R2,0x2,PT", "min((a + b) % 2**32, 2)"),
        ("IABS R0,R1", "abs(signed(a))"),
        ("MOV R0,0x12345678", "0x12345678"),
    ],
)
def test_result_is_that_of_integers(text: str, expected: str) -> None:
    assert _word(text) == [value & MASK for value in _values(expected)]


def test_carry_leads_from_the_lower_half_to_the_upper() -> None:
    lanes = carried_out("IADD3 R0,P1,R1,R2,RZ", {"R1": A, "R2": B})
    carry = lanes.flag("P1")
    assert carry is not None
    assert [int(one) for one in carry] == _values(f"a + b > {MASK}")


def test_sum_of_64_bits_fills_a_pair() -> None:
    lanes = carried_out("IADD.64 R0,R2,R4", {"R2": A, "R3": B, "R4": C, "R5": A})
    found = lanes.double("R0")
    expected = [
        ((b << 32 | a) + (a << 32 | c)) % 2**64
        for a, b, c in zip(*(map(int, words) for words in (A, B, C)), strict=True)
    ]
    assert found is not None
    assert [int(word) % 2**64 for word in found] == expected


def test_product_of_64_bits_fills_a_pair() -> None:
    lanes = carried_out(
        "IMAD.WIDE R4,R1,R2,R6", {"R1": A, "R2": B, "R6": filled(7), "R7": filled(0)}
    )
    pair = lanes.double("R4")
    assert pair is not None
    assert [int(one) for one in pair] == _values("signed(a) * signed(b) + 7")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("ISETP.LT.AND P0,PT,R1,R2,PT", "signed(a) < signed(b)"),
        ("ISETP.GE.U32.AND P0,PT,R1,R2,PT", "a >= b"),
        ("ISETP.NE.OR P0,PT,R1,R2,PT", "True"),
        ("ISETP.EQ.AND P0,PT,R1,R2,!PT", "False"),
    ],
)
def test_comparison_is_signed_unless_it_says_otherwise(text: str, holds: str) -> None:
    flag = carried_out(text, {"R1": A, "R2": B}).flag("P0")
    assert flag is not None
    assert [int(one) for one in flag] == _values(holds)


@pytest.mark.parametrize(
    "text",
    ["IADD3 R0,R1,R9,RZ", "IMAD R0,R9,R1,RZ", "LOP3.LUT R0,R1,R9,RZ,0xfc,!PT", "FADD R0,R1,R2"],
)
def test_result_of_what_is_not_known_is_not_known(text: str) -> None:
    assert carried_out(text, {"R0": A, "R1": A}).word("R0") is None


def test_inactive_lanes_keep_what_they_had() -> None:
    active = LANES < 4
    found = carried_out("MOV R0,R1", {"R0": filled(7), "R1": filled(9)}, active).word("R0")
    assert found is not None
    assert [int(one) for one in found] == [9] * 4 + [7] * 28


def test_division_by_a_reciprocal_is_exact_enough_for_its_correction() -> None:
    lanes = carried_out("I2F.U32.RP R0,R1", {"R1": filled(7168)})
    word = lanes.word("R0")
    assert word is not None
    assert float(np.uint32(word[0]).view(np.float32)) == 7168.0


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("IADD.64 R0,-R2,R4", ("R0", "R1")),
        ("UIADD3.64 UR0,UPT,UPT,UR2,UR4,URZ", ("UR0", "UR1")),
        ("I2F.F64 R0,R2", ("R0", "R1")),
        ("F2I.FLOOR.NTZ R0,R2", ("R0",)),
        ("F2I.S64.TRUNC R0,R2", ("R0", "R1")),
        ("MUFU.RCP R0,-R2", ("R0",)),
        ("HFMA2.MMA.BF16_V2 R0,-RZ,RZ,1,1", ("R0",)),
        ("LDC.U8 R0,c[0x0][0x0]", ("R0",)),
        ("LDG.E.ENL2.256 R0,R4,desc[UR4][R8.64]", ("R0", "R3", "R4", "R7")),
        ("LDSM.16.M88.4 R0,[R8]", ("R0", "R3")),
        ("PRMT.RC16 R0,R1,0x1,RZ", ("R0",)),
        ("SHF.R.U64 R0,R2,0x28,R3", ("R0",)),
        ("IMAD R0,R1.H0_H0,R2,RZ", ("R0",)),
    ],
)
def test_form_that_is_not_known_leaves_no_result(text: str, written: tuple[str, ...]) -> None:
    before = {f"{kind}{number}": A for kind in ("R", "UR") for number in range(10)}
    lanes = carried_out(text, before)
    assert [lanes.word(name) for name in written] == [None] * len(written)


@pytest.mark.parametrize("text", ["R2P PR,R1,0x7f", "ISETP.LT.U64.AND P1,PT,R2,R4,PT"])
def test_predicates_of_a_form_that_is_not_known_are_not_known(text: str) -> None:
    lanes = carried_out("ISETP.EQ.AND P1,PT,R1,R1,PT", {"R1": A})
    one = instruction(text)
    effect_of(one)(lanes, one, ALL)
    assert lanes.flag("P1") is None


def test_scaled_register_of_an_address_is_multiplied() -> None:
    lanes = carried_out("MOV R1,R1", {"R1": filled(3)})
    found = lanes.address("[R1.X4+0x10]")
    assert found is not None and int(found[0]) == 28


def test_integer_that_no_float_holds_is_clipped() -> None:
    word = carried_out("F2I.U32.TRUNC R0,R1", {"R1": filled(0x7F000000)}).word("R0")
    assert word is not None and int(word[0]) == MASK
