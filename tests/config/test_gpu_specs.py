"""Data sheets: found by name and by architecture, and told apart."""

import pytest

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import arch_named, gpu_for_arch, load_gpus


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        ("sm_90a", "sm_90a"),
        ("sm_120", "sm_120"),
        ("H100", "sm_90a"),
        ("h200", "sm_90a"),
        ("rtx4090", "sm_89"),
        ("RTX 4090", "sm_89"),
        ("rtx-pro-6000", "sm_120a"),
        ("b300", "sm_103a"),
    ],
)
def test_a_target_is_named_by_itself_or_by_its_gpu(text: str, arch: str) -> None:
    assert arch_named(text) == arch


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("H10", "did you mean H100"),
        ("sm_9", "did you mean sm_"),
        ("volta\x1b[2J", "neither an architecture such as sm_90a nor a GPU such as H100"),
        ("sm_50", "no GPU data sheet for sm_50; known: sm_100a"),
    ],
)
def test_what_is_neither_is_refused_with_what_there_is(text: str, said: str) -> None:
    with pytest.raises(ToolError) as refusal:
        arch_named(text)
    assert said in str(refusal.value)
    assert "\x1b" not in str(refusal.value)


@pytest.mark.parametrize(
    ("sheet", "device", "is_described"),
    [
        ("H200", "NVIDIA H200", True),
        ("H200", "NVIDIA GH200 480GB", False),
        ("L4", "NVIDIA L40S", False),
        ("RTX 4090", "NVIDIA GeForce RTX 4090", True),
        ("RTX PRO 6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", True),
    ],
)
def test_a_sheet_describes_devices_of_its_name(sheet: str, device: str, is_described: bool) -> None:
    assert load_gpus()[sheet].describes(device) is is_described


@pytest.mark.parametrize("name", load_gpus())
def test_what_was_measured_of_a_gpu_is_possible_for_it(name: str) -> None:
    sheet = load_gpus()[name]
    measured = dict(sheet.measured)
    if not measured:
        assert sheet.null_kernel_measured_on != name or name == "H100"
        return
    least = min(measured["null_kernel_us"], measured.get("dependent_null_kernel_us", 1e3))
    assert sheet.null_kernel_us == pytest.approx(least, rel=0.02)
    assert sheet.null_kernel_measured_on == name
    assert measured["shared_clocks"] < measured["l2_clocks"] < measured["dram_clocks"]
    copies = [value for key, value in measured.items() if key.endswith("_gb_s")]
    assert copies == sorted(copies) and copies[-1] < sheet.dram_bandwidth_gb_s


@pytest.mark.parametrize("name", load_gpus())
def test_a_sheet_s_limits_stand_for_its_architecture(name: str) -> None:
    sheet = load_gpus()[name]
    assert gpu_for_arch(sheet.arch).compute_capability == sheet.compute_capability
    assert sheet.arch.startswith("sm_{}{}".format(*sheet.compute_capability))
    lanes = 64 if sheet.compute_capability in ((7, 5), (8, 0)) else 128
    peak = sheet.sm_count * lanes * 2 * sheet.clock_mhz / 1e6
    assert sheet.fp32_tflop_s == pytest.approx(peak, rel=0.03)
