"""What the simulator reads from a source before it compiles it."""

import pytest

from kopt.tools.sim.unit import dynamic_shared_names, module_variables

LONG = 200_000


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("extern __shared__ float4 tile[];", {"tile"}),
        ("extern __shared__ alignas(16) unsigned char raw [ ] ;", {"raw"}),
        ("/* extern __shared__ */ extern __shared__ int late[];", {"late"}),
        ("extern __shared__ int fixed[4];", set[str]()),
        ("extern __shared__ float tile[][33], x; extern __shared__ int two[] [ N * 2 ];", {"two"}),
        ("extern volatile __shared__ float early[];", {"early"}),
        ("__shared__ extern __align__(16) char turned[];", {"turned"}),
        # Searched anew from each character, these would take hours.
        (f"// extern __shared__ {'a' * LONG}", set[str]()),
        ("// " + "extern __shared__ a " * (LONG // 20), set[str]()),
    ],
)
def test_dynamic_shared_arrays_are_found_by_name(source: str, names: set[str]) -> None:
    assert dynamic_shared_names(source) == names


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("\n__device__ unsigned long kept[4];", {"kept": 2}),
        ("__device__ __device__ int kept = 3;", {"kept": 1}),
        ("__device__ const float table[2] = {};", dict[str, int]()),
        ("__device__ float scaled(float x) { return x; }", dict[str, int]()),
        ("// " + "__device__ " * (LONG // 10), dict[str, int]()),
    ],
)
def test_variables_that_outlive_a_launch_are_found(source: str, variables: dict[str, int]) -> None:
    assert module_variables(source) == variables
