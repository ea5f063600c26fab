# What the scripts share. Sourced by them, with `set -euo pipefail` in force.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
export LC_ALL=C.UTF-8 HOME="${HOME:-/tmp}"
exec </dev/null

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# How many compilers at once: one for each core, and 2 GB of memory for each.
jobs_here() {
  local cores memory
  cores=$(nproc 2>/dev/null || echo 2)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo 2>/dev/null) || memory=$((cores * 2))
  [ "$memory" -ge 1 ] || memory=1
  echo "${CANDELA_JOBS:-$((cores < memory ? cores : memory))}"
}

# Time limits are longer on a slow or busy machine; what this script starts goes by the same measurement.
export CANDELA_TIME_PERCENT=${CANDELA_TIME_PERCENT:-$("$root/scripts/lib/time_percent.sh")}

# scaled MINUTES: that many on the machine on which limits were chosen, here.
scaled() {
  echo $(($1 * CANDELA_TIME_PERCENT / 100))
}

# phase NAME MINUTES COMMAND...: run it, say how long it took; after MINUTES, scaled, or when it fails, end here with its name.
# A function has no time limit, and `set -e` does not hold inside of it: it chains what it does with &&.
phase() {
  local name=$1 minutes start=$SECONDS status=0
  minutes=$(scaled "$2")
  shift 2
  echo "== $name"
  if [ "$(type -t "$1")" = function ]; then
    "$@" || status=$?
  else
    timeout --foreground -k 10 "${minutes}m" "$@" || status=$?
  fi
  case $status in
    0) echo "== $name: $((SECONDS - start)) s" ;;
    124) die "$name took more than $minutes minutes" ;;
    *) die "failed: $name, after $((SECONDS - start)) s (status $status; the reason stands above)" ;;
  esac
}

# configure PRESET [-DNAME=VALUE...]
configure() {
  cmake --preset "$1" -Wno-dev -DCANDELA_PCH=ON -DCANDELA_UNITY=ON "${@:2}"
}

# json_value FILE KEY...: the number or string that stands first after KEY, after the next KEY, ...; nothing when there is
# none. Enough for our own reports, and needs nothing that a bare system lacks.
json_value() {
  local file=$1
  shift
  awk -v keys="$*" 'BEGIN { RS = "\001"; count = split(keys, key, " ") }
    { for (i = 1; i <= count; i++) {
        if (!match($0, "\"" key[i] "\"[ \t\n]*:[ \t\n]*")) exit
        $0 = substr($0, RSTART + RLENGTH)
      }
      sub(/^"/, "")
      if (match($0, /^[^",}\] \t\n]+/)) print substr($0, 1, RLENGTH) }' "$file"
}
