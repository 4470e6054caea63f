#!/usr/bin/env bash
# try_wheel.sh WHEEL [PYTHON]: installs a wheel into a clean environment and uses it: encrypted computations, `jali doctor`,
# and the demo. OFFLINE=1: with the NumPy (and, if it is there, the scikit-learn) of PYTHON and nothing from the network.
set -euo pipefail
wheel=$(realpath "$1") python=${2:-python3}
checks=$(realpath "$(dirname "${BASH_SOURCE[0]}")/try_wheel.py")
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
cd "$room"
unset PYTHONPATH
offline=()
"$python" -m venv ${OFFLINE:+--system-site-packages} venv
[ -z "${OFFLINE:-}" ] || offline=(--no-index --no-deps)
venv/bin/python -m pip install -q "${offline[@]}" "$wheel"
venv/bin/python -I "$checks"
venv/bin/jali doctor >doctor.txt || { cat doctor.txt >&2; exit 1; }
if [ -n "${OFFLINE:-}" ]; then
  venv/bin/python -c 'import sklearn' 2>/dev/null || { echo "try_wheel: the demo is left out: no scikit-learn"; exit 0; }
else
  # What the package says to install for the demo must be enough for it.
  venv/bin/jali demo digits --limit 20 2>refusal.txt && { echo "the demo ran without scikit-learn" >&2; exit 1; }
  command=$(grep -o '[^ ]*python[^ ]* -m pip install .*' refusal.txt) || { cat refusal.txt >&2; exit 1; }
  bash -c "$command -q"
fi
venv/bin/jali demo digits --limit 20 --json >demo.json
venv/bin/python -c 'import json; x = json.load(open("demo.json")); assert x["accuracy"] > 0.9, x'
