#!/usr/bin/env bash
# gpu_visit.sh BINARY OUT [smoke|full] [FLAGS...]: one visit to a host with GPUs, which may be lent by the
# minute: looks at the machine, measures, and leaves at most eight files in OUT. BINARY was linked elsewhere;
# LibTorch, CUDA, cuDNN and NCCL come from this machine's Python environment (a wheel of the same version).
#   smoke  2 GPUs, ResNet-18 at 32, one repeat, all strategies: does everything run, and are the figures plausible?
#   full   all GPUs, ResNet-18 (CIFAR) and VGG-11 at 32 and 128, three repeats; ddp on 1 .. all GPUs, all_reduce
#          and gather_scatter on 2 and 4
# FLAGS go to lockstep-measure, instead of the mode's own where they name the same (--models resnet50,vgg16).
set -uo pipefail
binary=$1 out=$2 mode=${3:-full}
shift $(($# < 3 ? $# : 3))
mkdir -p "$out"
log=$out/visit.log

site=$(timeout 60 python3 -c 'import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec("torch").origin)))')
libraries=$(dirname "$binary")/lib:$site/torch/lib:$(echo "$site"/nvidia/*/lib | tr ' ' :)
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

{
  timeout 30 nvidia-smi
  timeout 30 nvidia-smi topo -m
  timeout 30 nvidia-smi --query-gpu=index,name,clocks.sm,clocks.max.sm,power.draw,power.limit,clocks_throttle_reasons.active,temperature.gpu --format=csv
  nproc
  timeout 30 ldd "$binary" | grep -i 'not found'
} >"$out/machine.txt" 2>&1
grep 'not found' "$out/machine.txt"

strategies=single,ddp,all_reduce,gather_scatter
case $mode in
  smoke) seconds=120 defaults=(--workers 2 --models resnet18_cifar --batches 32 --repeats 1 --block 200) ;;
  full) seconds=565 defaults=(--models resnet18_cifar,vgg11 --batches 32,128 --repeats 3 --block 300) ;;
  *) echo "gpu_visit.sh: smoke or full, not $mode" >&2; exit 2 ;;
esac
defaults+=(--strategies "$strategies" --silence 60)
flags=()
for ((i = 0; i < ${#defaults[@]}; i += 2)); do
  [[ " $* " == *" ${defaults[i]} "* ]] || flags+=("${defaults[@]:i:2}")
done
begin=$SECONDS
timeout --kill-after=10 "$seconds" "$binary" --device cuda --verbose -o "$out/measured" "${flags[@]}" "$@" 2>&1 |
  while IFS= read -r line; do printf '%4d %s\n' $((SECONDS - begin)) "$line"; done >"$log"
status=${PIPESTATUS[0]}
echo "exit code $status after $((SECONDS - begin)) s" >>"$log"

# Parts that were not merged (the time ran out) and the results, compressed.
if [ -d "$out/measured/parts" ]; then tar -C "$out/measured" -czf "$out/parts.tgz" parts; fi
for file in "$out"/measured/*.json; do
  [ -e "$file" ] && gzip -c "$file" >"$out/$(basename "$file").gz"
done
rm -rf "$out/measured"
tail -n 60 "$log"
ls -l "$out"
exit "$status"
