#!/usr/bin/env bash
# carry.sh PROGRAM: copies Gloo, and the libraries that only Gloo needs, into lib/ beside PROGRAM, so that it
# runs on a machine whose distribution has another Gloo or none:
#   LD_LIBRARY_PATH=lib:SITE/torch/lib:$(echo SITE/nvidia/*/lib | tr ' ' :) ./PROGRAM
# where SITE is the site-packages folder of a Python environment that has torch.
set -euo pipefail
lib=$(dirname "$1")/lib
rm -f "$lib"/libgloo.so*  # else a program that was carried before shows its own copy
gloo=$(ldd "$1" | awk '/libgloo/ {print $3}')
mkdir -p "$lib"
# Those that every Linux machine with a C++ program has stay behind.
{ echo "$gloo"; ldd "$gloo" | awk '/=> \// {print $3}'; } |
  grep -vE '/(ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)[-.]' | xargs cp -Lt "$lib"
