#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment, and uses it there: no torch, at most 320 MB, and it works;
# typed, with the newest MCP SDK by itself, and with an earlier one where another package needs that.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

.venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir "$work" .
"${PYTHON:-python3.11}" -m venv "$work/env"
"$work/env/bin/pip" install --quiet "$work"/pegboard-*.whl

if "$work/env/bin/pip" list 2>/dev/null | grep -qi '^torch '; then
  echo "the wheel brings torch" >&2
  exit 1
fi
brought=(pip 'pip-*' setuptools 'setuptools-*' pkg_resources _distutils_hack)  # by the empty environment, before us
size=$(du -sm "${brought[@]/#/--exclude=}" "$work"/env/lib/python3*/site-packages | cut -f1)
echo "site-packages: $size MB"  # a figure to watch; more than a few over 320 wants a reason

export PEGBOARD_CACHE_DIR="$work/cache"
cp examples/tools.json "$work" && cd "$work"
"$work/env/bin/pegboard" --version
"$work/env/bin/pegboard" audit --catalog tools.json --json > audit.json
"$work/env/bin/pegboard" route "open an issue about the login page" --catalog tools.json --json |
  "$work/env/bin/python" -c "import json, sys; print(json.load(sys.stdin)['active'])"

"$work/env/bin/python" -c "
from importlib import metadata, resources
assert tuple(map(int, metadata.version('mcp').split('.')[:2])) >= (2, 3), metadata.version('mcp')
assert resources.files('pegboard').joinpath('py.typed').is_file()"

"$work/env/bin/pip" install --quiet "$work"/pegboard-*.whl 'mcp<2'
"$work/env/bin/pegboard" route "open an issue about the login page" --catalog tools.json > /dev/null
echo '{"mcpServers": {"rail": {"command": "true"}}}' > mcp.json
said=$("$work/env/bin/pegboard" mcp --config mcp.json 2>&1 < /dev/null || true)
grep -q "pip install 'mcp>=2.3'" <<< "$said"
