#!/usr/bin/env bash
# By how much time limits are longer on this machine, under what else it does now, than they are written: percent, at least 100.
# The work below took 0.25 s on the machine on which they were chosen.
set -euo pipefail
export LC_ALL=C

reference_us=250000

work() {
  local i sum=0
  for ((i = 0; i < 60000; i++)); do
    sum=$(((sum + i * i) % 1000003))
  done
}

before=${EPOCHREALTIME/./}
work
after=${EPOCHREALTIME/./}
percent=$(((after - before) * 100 / reference_us))
echo $((percent > 100 ? percent : 100))
