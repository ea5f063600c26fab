#!/usr/bin/env bash
# opencl_gpu.sh DEVICE [FOLDER]: everything about one GPU: the conformance suite in full, the benchmark models against their committed
# answers, and the figures of benchmarks/opencl/opencl_speed.py, as they are and tuned. DEVICE is a number or a part of a name, as
# `candela backends` shows it; reports go to FOLDER (build/opencl_gpu). Needs a build in build/ and the device's driver.
# Every part runs, also after one has failed; ends with 1 when any has.
set -euo pipefail
. "$(dirname "$0")/../scripts/lib/common.sh"

device=${1:?usage: benchmarks/opencl_gpu.sh DEVICE [FOLDER]}
folder=${2:-build/opencl_gpu}
candela=build/bin/candela
[ -x "$candela" ] || die "$candela is missing; build it first"
mkdir -p "$folder/models"
failed=""

# try NAME COMMAND...
try() {
  local name=$1
  shift
  echo "== $name"
  "$@" || failed="$failed $name"
}

"$candela" backends
try conformance "$candela" conform --backend opencl --option "device=$device" --size full --json "$folder/conform.json"
build/bin/candela-gen-models "$folder/models" >/dev/null
for case in mbv2=1.16e-3 resnet50=0.35 bert4=7e-4 mbv2_int8=0.1001 resnet50_int8=0.1001 bert4_int8=0.142; do
  model=${case%=*}
  try "$model" "$candela" run "$folder/models/$model.onnx" --dim N=1 --random 1 --backend opencl --option "device=$device" \
    --require-native --expect "out=tests/models/expected/${model}_seed1.npy" --rtol 0 --atol "${case#*=}"
done
for tune in "" --tune; do
  try "figures $tune" python3 -B benchmarks/opencl/opencl_speed.py --device "$device" --threads 0 --models "$folder/models" $tune \
    --report "$folder/speed${tune:+_tuned}.json"
done
[ -z "$failed" ] || die "failed:$failed"
echo "opencl_gpu: all passed, reports in $folder"
