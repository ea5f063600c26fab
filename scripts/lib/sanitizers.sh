#!/usr/bin/env bash
# sanitizers.sh PRESET [nightly]: build the tests marked SANITIZE under the sanitizers of a preset (asan, tsan) and run them;
# with "nightly" those marked SANITIZE_NIGHTLY too, and with all checks. A CTest test of the main build calls this; it works by hand just as well.
set -euo pipefail
. "$(dirname "$0")/common.sh"

preset=${1:?preset: asan or tsan}
case ${2:-} in
  "") target=candela_sanitize_tests labels='^sanitize$' fast=ON ;;
  nightly) target=candela_sanitize_nightly_tests labels='^sanitize(_nightly)?$' fast=OFF ;;
  *) die "'$2' is not \"nightly\"" ;;
esac
folder=build-$preset
export ASAN_OPTIONS="strict_string_checks=1:detect_stack_use_after_return=1:check_initialization_order=1"
export UBSAN_OPTIONS="print_stacktrace=1"

phase "configure $folder" 2 configure "$preset" -DCANDELA_SANITIZE_FAST="$fast"
phase "build $folder" 30 cmake --build "$folder" --target "$target" -j "$(jobs_here)"
phase "tests of $folder" 15 ctest --test-dir "$folder" -L "$labels" -LE '^nightly$' -j "$(jobs_here)" \
  --no-tests=error --output-on-failure
