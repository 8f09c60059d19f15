#!/usr/bin/env bash
# gloo_symbols.sh PROGRAM: LibTorch exports Gloo symbols of another version. The dynamic linker itself says
# where each Gloo symbol of PROGRAM is bound: to libgloo (or, for inline code, to PROGRAM), never to LibTorch.
set -euo pipefail
program=$1
bindings=$(LD_BIND_NOW=1 LD_DEBUG=bindings "$program" --version 2>&1 |
  grep -E "binding file [^ ]*$(basename "$program") .*symbol .*4gloo" || true)
grep -c 'to [^ ]*libgloo' <<<"$bindings" || { echo "no Gloo symbol is bound to libgloo"; exit 1; }
! grep 'to [^ ]*libtorch' <<<"$bindings"
