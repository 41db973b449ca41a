"""What the environment decides, and what of it may be handed on."""

from kopt.config.settings import settings_from_environment


def test_library_variables_are_handed_on_and_nothing_else() -> None:
    handed_on = {
        "CUDA_VISIBLE_DEVICES": "1",
        "FLASHINFER_CUDA_ARCH_LIST": "9.0a",
        "LD_LIBRARY_PATH": "/opt/driver",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "PATH": "/usr/bin",
    }
    kept_back = {
        "ANTHROPIC_API_KEY": "made-up",
        "CUDA_REGISTRY_TOKEN": "made-up",
        "CUDA_CACHE_PATH": "/home/somebody/cache",
        "HOME": "/home/somebody",
        "NVIDIA_API_KEY": "made-up",
        "PYTHONPATH": "/home/somebody/lib",
    }
    settings = settings_from_environment({**handed_on, **kept_back})
    assert dict(settings.library_environment) == handed_on
    assert hash(settings) == hash(settings_from_environment({**handed_on, **kept_back}))
