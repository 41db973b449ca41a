"""What the environment decides, and what of it may be handed on."""

from kopt.config.settings import settings_from_environment, without_secrets


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


def test_child_processes_get_no_secret_and_all_else() -> None:
    environment = {
        "PATH": "/usr/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "https_proxy": "http://proxy.example:3128",
        "ANTHROPIC_API_KEY": "sk-1",
        "github_token": "gh-1",
        "SSH_AUTH_SOCK": "/tmp/agent",
        "PIP_INDEX_URL": "https://me:word@example.org/simple",
        "GITHUB_PAT": "made-up",
        "AZURE_DEVOPS_EXT_PAT": "made-up",
        "pat": "made-up",
        "GH_LOGIN": "ghp_" + "a" * 36,
        "HEADER": "Bearer github_pat_" + "b" * 40,
        "HUB": "hf_" + "c" * 34,
        "AWS_ID": "AKIA" + "D" * 16,
        "SESSION": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0000.signature",
        "MODULE_PATH": "/usr/share/task-sk-1",
        "PATTERN": "*.cu",
    }
    kept = {"PATH", "CUDA_VISIBLE_DEVICES", "https_proxy", "MODULE_PATH", "PATTERN"}
    assert without_secrets(environment).keys() == kept


def test_sources_to_hide_are_read_as_a_list_with_commas() -> None:
    text = " winners, flash_attn ,,winners"
    assert settings_from_environment({"KOPT_WITHOUT_SOURCES": text}).without_sources == (
        "winners",
        "flash_attn",
    )
    assert settings_from_environment({}).without_sources == ()
