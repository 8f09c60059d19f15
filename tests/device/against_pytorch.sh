#!/usr/bin/env bash
# against_pytorch.sh BINARY OUT [SECONDS]: the runner's DDP and PyTorch's own on the same GPUs, turn about, until
# SECONDS (default 280) are nearly over, at most three times. Leaves in OUT, per turn, the runner's runs and
# PyTorch's record. BINARY was linked elsewhere, as in gpu_visit.sh.
set -uo pipefail
binary=$(realpath "$1") out=$2 seconds=${3:-280}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
baseline=$here/pytorch_ddp.py
[ -e "$baseline" ] || baseline=$here/../benchmarks/pytorch_ddp.py
mkdir -p "$out"
export NCCL_NVLS_ENABLE=0
gpus=$(nvidia-smi --list-gpus | wc -l)
site=$(timeout 60 python3 -c 'import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec("torch").origin)))')
libraries=$(dirname "$binary")/lib:$site/torch/lib:$(echo "$site"/nvidia/*/lib | tr ' ' :)

# One launch of the runner on all GPUs, as torchrun would start it.
runner() {
  local turn=$1 rank pids=() status=0
  for ((rank = 0; rank < gpus; rank++)); do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$gpus LOCAL_WORLD_SIZE=$gpus MASTER_ADDR=127.0.0.1 MASTER_PORT=295$((40 + turn)) \
      LD_LIBRARY_PATH=$libraries timeout --kill-after=5 120 "$binary" --device cuda --strategies ddp \
      --models vgg11,resnet18_cifar,resnet50 --batches 32,128 --precision tf32 --repeats 1 --block 300 --silence 60 \
      -o "$out/turn$turn" >"$out/turn$turn-rank$rank.log" 2>&1 &
    pids+=($!)
  done
  for rank in "${pids[@]}"; do wait "$rank" || status=$?; done
  return "$status"
}

pytorch() {
  timeout --kill-after=5 90 python3 "$baseline" --workers "$gpus" --batches 32,128 --seconds 0.6 --port 295$((60 + $1)) \
    -o "$out/pytorch$1.json" >"$out/pytorch$1.log" 2>&1
}

nvidia-smi --query-gpu=index,name,clocks.sm,power.draw,clocks_throttle_reasons.active --format=csv | tee "$out/machine.txt"
longest=0
for turn in 1 2 3; do
  begin=$SECONDS
  [ $((SECONDS + longest)) -lt "$seconds" ] || break
  runner $turn || { echo "the runner ended with $? in turn $turn"; tail -n 3 "$out/turn$turn-rank"*.log; }
  middle=$SECONDS
  pytorch $turn || { echo "PyTorch ended with $? in turn $turn"; tail -n 5 "$out/pytorch$turn.log"; }
  longest=$((SECONDS - begin))
  echo "turn $turn: runner $((middle - begin)) s, PyTorch $((SECONDS - middle)) s"
  cat "$out/turn$turn-rank0.log" "$out/pytorch$turn.log"
done
rm -f "$out"/turn*-rank[1-9].log
tar -C "$out" -czf "$out/../against_pytorch.tgz" . && mv "$out/../against_pytorch.tgz" "$out/"
find "$out" -mindepth 1 -maxdepth 1 ! -name "*.tgz" ! -name machine.txt -exec rm -rf {} +
