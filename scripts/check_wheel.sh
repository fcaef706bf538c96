#!/usr/bin/env bash
# Builds the wheel and uses it in two empty environments. Alone: the library, at most 240 MB, no web server and no MCP SDK,
# imported in 50 ms; the command says which extra it lacks. With `gateway`: the command, the newest MCP SDK by itself, and
# an earlier one where another package needs that.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PEGBOARD_CACHE_DIR="$work/cache"

.venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir "$work" .
wheel=$(echo "$work"/pegboard-*.whl)
cp examples/tools.json scripts/check_core.py "$work"

"${PYTHON:-python3.11}" -m venv "$work/core"
"$work/core/bin/pip" install --quiet "$wheel"
brought=(pip 'pip-*' setuptools 'setuptools-*' pkg_resources _distutils_hack)  # by the empty environment, before us
size=$(du -sm "${brought[@]/#/--exclude=}" "$work"/core/lib/python3*/site-packages | cut -f1)
echo "site-packages of the library: $size MB"
[[ $size -le 240 ]]
(cd "$work" && core/bin/python check_core.py)
said=$("$work/core/bin/pegboard" serve 2>&1 || true)
grep -qF "pip install 'pegboard[cli]'" <<< "$said"

"${PYTHON:-python3.11}" -m venv "$work/env"
"$work/env/bin/pip" install --quiet "$wheel[gateway]"
if "$work/env/bin/pip" list 2>/dev/null | grep -qi '^torch '; then
  echo "the wheel brings torch" >&2
  exit 1
fi
size=$(du -sm "${brought[@]/#/--exclude=}" "$work"/env/lib/python3*/site-packages | cut -f1)
echo "site-packages with gateway: $size MB"  # a figure to watch; more than a few over 320 wants a reason

cd "$work"
"$work/env/bin/pegboard" --version
"$work/env/bin/pegboard" audit --catalog tools.json --json > audit.json
"$work/env/bin/pegboard" route "open an issue about the login page" --catalog tools.json --json |
  "$work/env/bin/python" -c "import json, sys; print(json.load(sys.stdin)['active'])"

"$work/env/bin/python" -c "
from importlib import metadata, resources
assert tuple(map(int, metadata.version('mcp').split('.')[:2])) >= (2, 3), metadata.version('mcp')
assert resources.files('pegboard').joinpath('py.typed').is_file()"

"$work/env/bin/pip" install --quiet 'mcp<2' 2> /dev/null  # pip says that `gateway` wants a later one
"$work/env/bin/pegboard" route "open an issue about the login page" --catalog tools.json > /dev/null
echo '{"mcpServers": {"rail": {"command": "true"}}}' > mcp.json
said=$("$work/env/bin/pegboard" mcp --config mcp.json 2>&1 < /dev/null || true)
grep -q "pip install 'mcp>=2.3'" <<< "$said"
