#!/usr/bin/env bash
# Installs once what Lockstep needs: the distribution's packages of the lists named as arguments (apt.txt
# when none is), and LibTorch and matplotlib in a Python environment of its own. Quick when nothing is
# missing. Without root it prints the one apt line to run, and exits with 2.
#   LOCKSTEP_VENV   the environment, default .venv in the project; another one is only looked at
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(dirname "$(dirname "$here")")
venv=${LOCKSTEP_VENV:-$project/.venv}

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 2
}

missing_packages() {
  local wanted installed
  wanted=$(grep -hv '^#' "$@" | sort -u)
  # shellcheck disable=SC2086
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
    sed -n 's/^installed //p' | sort -u || true)
  comm -23 <(echo "$wanted") <(echo "$installed") | xargs
}

install_packages() {
  command -v dpkg-query >/dev/null || fail "this is no Debian or Ubuntu; install the like of:" \
    "$(grep -hv '^#' "$@" | xargs)"
  local missing as_root=()
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null ||
      fail "packages are missing; install them and run this again:" \
        "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing"
    as_root=(sudo -n)
  fi
  echo "setup: installing $missing"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -q)
  "${as_root[@]}" update </dev/null
  # shellcheck disable=SC2086
  "${as_root[@]}" install -y --no-install-recommends $missing </dev/null
}

# A stamp holds the list that was installed, so a changed list is installed again.
install_python() {
  local list=$here/python.txt stamp=$venv/lockstep-python.txt
  cmp -s "$list" "$stamp" && return 0
  if [ -n "${LOCKSTEP_VENV:-}" ]; then
    "$venv/bin/python" -c 'import importlib.metadata as m; m.version("torch"); m.version("matplotlib")' 2>/dev/null ||
      fail "LOCKSTEP_VENV=$venv lacks torch or matplotlib; install them there:" \
        "  $venv/bin/pip install torch==2.11.0 matplotlib"
    return 0
  fi
  echo "setup: installing LibTorch and matplotlib into $venv (about 1.3 GB)"
  # Debian's own Python: one from pyenv or conda may lack venv or bring its own libstdc++.
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$list" </dev/null
  cp "$list" "$stamp"
}

lists=()
for name in "${@:-apt.txt}"; do
  lists+=("$here/$name")
done
install_packages "${lists[@]}"
install_python
