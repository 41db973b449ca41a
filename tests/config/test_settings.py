"""What the environment decides, and what of it may be handed on."""

import os
import pwd
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.passed_environment import SERVER_VARIABLES
from kopt.config.settings import (
    DEFAULT_PACKAGE_INDEX,
    ClaudeAccess,
    client_environment,
    leave_out_pydantic_plugins,
    server_variables,
    settings_from_environment,
    without_secrets,
)

KEY = "pcsk_made_up_0123456789abcdef"


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


@pytest.mark.parametrize("own", [None, "logfire-plugin"])
def test_pydantic_looks_for_no_plugins_unless_the_user_says_so(own: str | None) -> None:
    environment = {} if own is None else {"PYDANTIC_DISABLE_PLUGINS": own}
    leave_out_pydantic_plugins(environment)
    assert environment == {"PYDANTIC_DISABLE_PLUGINS": own or "__all__"}


@pytest.mark.parametrize(("set_to", "idle_s"), [(None, 600.0), ("", 600.0), ("0", 0.0), ("5", 5.0)])
def test_a_resident_evaluator_stays_ten_minutes_unless_the_user_says_otherwise(
    set_to: str | None, idle_s: float
) -> None:
    environment = {} if set_to is None else {"KOPT_GPU_IDLE_S": set_to}
    assert settings_from_environment(environment).gpu_idle_s == idle_s


def test_child_processes_get_no_secret_and_all_else() -> None:
    environment = {
        "PATH": "/usr/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "https_proxy": "http://proxy.example:3128",
        "ANTHROPIC_API_KEY": "sk-1",
        "github_token": "gh-1",
        "SSH_AUTH_SOCK": "/tmp/agent",
        "PIP_INDEX_URL": "https://me:word@example.org/simple",
        "FEED": "https://made-up@example.org/simple",
        "MIRROR": "https://made-up:@example.org/simple",
        "GITHUB_PAT": "made-up",
        "AZURE_DEVOPS_EXT_PAT": "made-up",
        "pat": "made-up",
        "GH_LOGIN": "ghp_" + "a" * 36,
        "HEADER": "Bearer github_pat_" + "b" * 40,
        "HUB": "hf_" + "c" * 34,
        "VECTORS": KEY,
        "PINECONE_ADDITIONAL_HEADERS": '{"Proxy": "made-up"}',
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


def test_run_to_log_with_is_read_and_handed_to_servers() -> None:
    environment = {"KOPT_RUN": "run-1"}
    assert settings_from_environment(environment).retrieval_run == "run-1"
    assert server_variables(environment) == environment
    assert settings_from_environment({"KOPT_RUN": ""}).retrieval_run is None


def test_the_way_to_another_machine_is_read() -> None:
    environment = {"KOPT_REMOTE_PYTHON": "/opt/python3.12", "SSH_AUTH_SOCK": "/tmp/agent"}
    settings = settings_from_environment(environment)
    assert (settings.remote_python, settings.ssh_agent) == ("/opt/python3.12", "/tmp/agent")
    assert server_variables(environment) == {"KOPT_REMOTE_PYTHON": "/opt/python3.12"}
    nothing = settings_from_environment({"KOPT_REMOTE_PYTHON": ""})
    assert (nothing.remote_python, nothing.ssh_agent) == (None, None)


def test_the_key_of_pinecone_is_shown_nowhere_and_stays_in_this_process() -> None:
    environment = {"PINECONE_API_KEY": f"{KEY}\n", "PINECONE_INDEX_NAME": "mine"}
    settings = settings_from_environment(environment)
    assert settings.pinecone_api_key == KEY
    assert KEY not in repr(settings)
    assert settings.without_keys().pinecone_api_key is None
    assert settings.without_keys().pinecone_index_name == "mine"
    assert KEY not in repr(settings.library_environment)
    assert server_variables(environment) == {"PINECONE_INDEX_NAME": "mine"}
    assert "PINECONE_API_KEY" not in SERVER_VARIABLES


def test_the_key_of_claude_is_shown_nowhere_and_stays_in_this_process() -> None:
    secret = "made-up-claude-key"
    address = "https://me:word@gateway.example"
    environment = {"ANTHROPIC_API_KEY": f" {secret}\n", "ANTHROPIC_BASE_URL": address}
    settings = settings_from_environment(environment)
    assert settings.claude == ClaudeAccess(api_key=secret, base_url=address)
    assert secret not in repr(settings) and "word" not in repr(settings)
    assert settings.without_keys().claude is None
    assert server_variables(environment) == {}
    assert without_secrets(environment) == {}


def test_a_token_is_used_where_there_is_no_key() -> None:
    token = {"ANTHROPIC_AUTH_TOKEN": "made-up-token"}
    both = {"ANTHROPIC_API_KEY": "made-up-key", **token}
    assert settings_from_environment(token).claude == ClaudeAccess(auth_token="made-up-token")
    assert settings_from_environment(both).claude == ClaudeAccess(api_key="made-up-key")


def test_an_address_alone_gives_no_access_to_claude() -> None:
    environment = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "ANTHROPIC_API_KEY": ""}
    assert settings_from_environment(environment).claude is None


def test_without_variables_of_pinecone_nobody_is_asked() -> None:
    settings = settings_from_environment({"PINECONE_API_KEY": " ", "PINECONE_INDEX_HOST": ""})
    assert settings.pinecone_api_key is None
    assert (settings.pinecone_index_name, settings.pinecone_index_host) == ("cuda-kernels-v2", None)


@pytest.mark.parametrize("value", ["made up", "made\nup", "schl\u00fcssel"])
def test_a_key_that_no_request_can_carry_is_refused_unseen(value: str) -> None:
    with pytest.raises(ToolError, match="PINECONE_API_KEY") as caught:
        settings_from_environment({"PINECONE_API_KEY": value})
    assert value not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "index"),
    [
        ({}, "https://pypi.org/simple"),
        ({"PIP_INDEX_URL": "", "UV_INDEX_URL": "https://uv/simple"}, "https://uv/simple"),
        ({"UV_INDEX_URL": "https://uv", "UV_DEFAULT_INDEX": "https://default"}, "https://default"),
        ({"UV_INDEX_URL": "https://uv", "PIP_INDEX_URL": "https://pip"}, "https://pip"),
    ],
)
def test_package_index_is_the_one_of_pip_or_uv(environment: dict[str, str], index: str) -> None:
    assert settings_from_environment(environment).package_index == index


def test_password_of_the_package_index_is_not_shown() -> None:
    settings = settings_from_environment({"PIP_INDEX_URL": "https://me:s3cret@host/simple"})
    assert "s3cret" not in repr(settings)
    assert settings.without_keys().package_index == DEFAULT_PACKAGE_INDEX


def test_a_relative_folder_means_the_same_in_every_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = settings_from_environment({"KOPT_HOME": "home", "KOPT_PROBLEMS": "mine"})
    assert (settings.home, settings.problems) == (tmp_path / "home", tmp_path / "mine")


def test_an_empty_home_is_no_folder_at_the_root() -> None:
    own = pwd.getpwuid(os.getuid()).pw_dir
    assert settings_from_environment({"HOME": ""}).home == Path(own) / ".kopt"


def test_a_user_without_a_home_folder_is_told_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    with pytest.raises(ToolError, match="set HOME or KOPT_HOME"):
        settings_from_environment({})


def test_client_in_a_model_s_place_gets_the_users_environment_without_keys() -> None:
    kept = {"HOME": "/home/me", "CLAUDE_CODE_OAUTH_TOKEN": "t", "CLAUDE_CODE_USE_BEDROCK": "1"}
    keys = {
        "ANTHROPIC_API_KEY": "k",
        "OPENAI_API_KEY": "k",
        "CODEX_API_KEY": "k",
        "CLAUDECODE": "1",
    }
    assert client_environment(kept | keys) == kept
