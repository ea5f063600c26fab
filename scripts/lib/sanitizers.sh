#!/usr/bin/env bash
# sanitizers.sh PRESET: build the tests marked SANITIZE under the sanitizers of a preset (asan, tsan) and run them.
# A CTest test of the main build calls this; it works by hand just as well.
set -euo pipefail
. "$(dirname "$0")/common.sh"

preset=${1:?preset: asan or tsan}
folder=build-$preset
export ASAN_OPTIONS="strict_string_checks=1:detect_stack_use_after_return=1:check_initialization_order=1"
export UBSAN_OPTIONS="print_stacktrace=1"

phase "configure $folder" 2 configure "$preset"
phase "build $folder" 30 cmake --build "$folder" --target candela_sanitize_tests -j "$(jobs_here)"
phase "tests of $folder" 15 ctest --test-dir "$folder" -L '^sanitize$' -LE nightly -j "$(jobs_here)" \
  --no-tests=error --output-on-failure --timeout 300
