#!/usr/bin/env bash
# out_of_tree.sh BUILD: install a build and take it elsewhere; then build and run against it, without this tree, what a
# user would: the ports that it brings along, a new one in each language, the embedding example, and the simulator, alone and
# on a platform of SystemC.
set -euo pipefail
. "$(dirname "$0")/common.sh"

build=$(cd "${1:?a build folder}" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
sdk=$place/sdk
examples=$sdk/share/candela/examples
digits=$examples/digits
unset CANDELA_PLUGIN_PATH

# Moved after it was installed: it has to find its own parts from where it lies.
install_build() {
  local first=$place/first
  cmake --install "$build" --prefix "$first" >"$place/install.log" || { cat "$place/install.log"; return 1; }
  mv "$first" "$sdk" && python3 -B "$root/tests/hygiene/check_search_paths.py" "$sdk" &&
    # Programs hold the paths of their sources for messages; no text may.
    if grep -rIl -e "$root/" -e "$build/" -e "$first/" "$sdk"; then
      echo "these files of the installation name a folder that a user does not have"
      return 1
    fi
}

# A build of which something is missing installs nothing at all.
refuse_unbuilt() {
  cmake --preset release -B "$place/unbuilt" >"$place/configure.log" || { cat "$place/configure.log"; return 1; }
  if cmake --install "$place/unbuilt" --prefix "$place/half" 2>"$place/refusal" || [ -e "$place/half" ]; then
    echo "a build without a single program was installed"
    return 1
  fi
  grep -F "nothing was installed" "$place/refusal"
}

# build_project SOURCE NAME
build_project() {
  cmake -S "$1" -B "$place/$2" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$sdk" &&
    cmake --build "$place/$2" -j "$(jobs_here)"
}

# run_digits PLUGIN OPTION...: the digits model, by the installed tool; inside of the root $bare when that is set.
run_digits() {
  ${bare:+chroot "$bare"} "$sdk/bin/candela" run "$digits/digits.onnx" --backend "$@" \
    --input "images=$digits/test_images.npy" --labels "$digits/test_labels.npy" \
    --expect "scores=$digits/expected_scores.npy" --rtol 0 --atol 5.8e-3
}

# check_plugin NAME [COUNT]: the plugins that a project built, one unless it says more.
check_plugin() {
  local plugin plugins count=${2:-1}
  plugins=$(find "$place/$1" -name '*.so' -type f)
  [ "$(echo "$plugins" | grep -c .)" = "$count" ] || { echo "$1: expected $count, found: ${plugins:-none}"; return 1; }
  for plugin in $plugins; do
    python3 -B "$root/tests/hygiene/check_symbols.py" "$plugin" && run_digits "$plugin" || return 1
  done
}

# new_backend NAME LANGUAGE: builds in a path with a blank, keeps its tests, and runs a model with all of it emulated.
new_backend() {
  local project="$place/new $1" plugin
  "$sdk/bin/candela" new-backend "$1" "$project" --language "$2" &&
    cmake -S "$project" -B "$project/build" -G Ninja -DCMAKE_PREFIX_PATH="$sdk" \
      -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" &&
    cmake --build "$project/build" -j "$(jobs_here)" &&
    ctest --test-dir "$project/build" --no-tests=error --output-on-failure || return 1
  plugin=$project/build/lib/candela/libcandela_$1.so
  python3 -B "$root/tests/hygiene/check_symbols.py" "$plugin" && run_digits "$plugin" --explain >"$place/explain" ||
    { cat "$place/explain"; return 1; }
  grep -F ' 0.0 % of MACs native; 1 native, 8 emulated, 0 host;' "$place/explain" ||
    { cat "$place/explain"; echo "$1: this is not what a port without a primitive does"; return 1; }
}

# first_primitive NAME FILE LINE: with the code that the project's README gives before that line, and the claim that it
# names, the port computes what it claims.
first_primitive() {
  local project="$place/new $1"
  awk '/^ *```(cpp|c)$/ { inside = 1; next } /^ *```$/ { inside = 0 } inside' "$project/README.md" >"$place/code" &&
    awk -v code="$place/code" -v line="$3" '/claim\(cdl::Profile::INT8\)/ { next }
      index($0, line) == 1 { while ((getline text < code) > 0) print text } { print }' "$project/$2" >"$place/source" &&
    mv "$place/source" "$project/$2" || return 1
  [ ! -f "$project/capabilities.c" ] || sed -i "$project/capabilities.c" -e 's/ | 1u << CDL_PROFILE_INT8//' \
    -e 's/^#define IS_NATIVE.*/#define IS_NATIVE(kind) ((kind) == CDL_KIND_MATMUL)/' \
    -e 's/^\(#define ROW_CDL_PROFILE_INT8(...)\).*/\1/' || return 1
  cmake --build "$project/build" &&
    "$sdk/bin/candela" conform --cases 'primitives:matmul/*' --size full --json "$place/report.json" \
      --backend "$project/build/lib/candela/libcandela_$1.so" || return 1
  [ "$(json_value "$place/report.json" passed)" -gt 0 ] || { echo "no case of a matrix product ran"; return 1; }
}

# bare_root PLUGIN: a system of nothing but the installation, the plugin and the libraries of both.
bare_root() {
  local bare=$place/bare library
  [ "$(id -u)" = 0 ] || { echo "left out: only root may change the root"; return 0; }
  mkdir -p "$bare/tmp" && cp -r "$sdk" "$bare/candela" && rm -f "$bare"/candela/lib/candela/*cpu* &&
    cp "$1" "$bare/tmp/port.so" || return 1
  for library in $({ ldd "$sdk/bin/candela"; ldd "$1"; } | grep -o '/[^ ]*' | sort -u); do
    install -D "$library" "$bare$library" || return 1
  done
  chroot "$bare" /candela/bin/candela new-backend acme /tmp/acme &&
    chroot "$bare" /candela/bin/candela debug /tmp/acme/tests/first_model.cdl --backend /tmp/port.so &&
    sdk=/candela digits=/candela/share/candela/examples/digits run_digits /tmp/port.so
}

# expect_refusal WORDS BUNDLE: the stored digits do not run, and the message says why.
expect_refusal() {
  local said
  if said=$(CANDELA_PLUGIN_PATH=$place/tiles_backend/lib/candela "$sdk/bin/candela" run "$2" \
    --input "images=$digits/test_images.npy" 2>&1); then
    echo "$2 runs, expected: $1"
    return 1
  fi
  echo "$said"
  [[ $said == *"$1"* ]] || { echo "expected: $1"; return 1; }
}

# The port that compiles: all that it claims, an op of its own, a late refusal, and its blobs, refused by name when they are damaged or of
# another format.
check_tiles_backend() {
  local source=$examples/tiles_backend stored=$place/digits.cdb
  local plugins=$place/tiles_backend/lib/candela
  local plugin=$plugins/libcandela_tiles.so
  check_plugin tiles_backend && "$sdk/bin/candela" conform --size quick --backend "$plugin" || return 1
  "$sdk/bin/candela" run "$source/late_refusal.cdl" --backend "$plugin" --option local=40 --random 1 --explain \
    >"$place/explain" && grep -m 1 -F "tiles: refused by the backend: conv2d 'Conv_0': needs 9 tiles" "$place/explain" ||
    { cat "$place/explain"; return 1; }
  # An op of its own domain, against what the plugin says that it means.
  "$sdk/bin/candela" run "$examples/custom_op/soft_threshold.onnx" --backend "$plugin" --dim N=100 --random 1 \
    --require-native --output "$place/tiles" &&
    "$sdk/bin/candela" run "$examples/custom_op/soft_threshold.onnx" --backend "reference,$plugin" --dim N=100 \
      --random 1 --expect "y=$place/tiles/y.npy" --rtol 0 --atol 1e-5 || return 1
  "$sdk/bin/candela" compile "$digits/digits.onnx" --dim N=360 --backend "$plugin" -o "$stored" &&
    CANDELA_PLUGIN_PATH=$plugins "$sdk/bin/candela" run "$stored" --input "images=$digits/test_images.npy" \
      --labels "$digits/test_labels.npy" || return 1
  python3 -c 'import sys
bytes = bytearray(open(sys.argv[1], "rb").read())
bytes[bytes.index(b"CDLX") + 400] ^= 1
open(sys.argv[2], "wb").write(bytes)' "$stored" "$place/damaged.cdb" &&
    expect_refusal "stored executable is damaged: its bytes do not have its checksum" "$place/damaged.cdb" || return 1
  sed -i 's/kFormat = 1;/kFormat = 2;/' "$source/blob.cpp" && build_project "$source" tiles_backend &&
    expect_refusal "was made by tiles 0.1.0 in format 1, this is tiles 0.1.0, which reads format 2" "$stored"
}

# The provider of ONNX Runtime finds the embedding library from where it lies; who opens it has no path for that.
check_onnxruntime() {
  env -u LD_LIBRARY_PATH python3 -c 'import ctypes, sys
ctypes.CDLL(sys.argv[1]).CreateEpFactories' "$sdk/lib/libcandela_ort_ep.so"
}

check_hello_run() {
  "$place/hello_run/hello_run" "$digits/digits.onnx" "$digits/test_images.npy"
}

# expect_missing WORDS PREFIX OPTION...: what find_package wants of that installation is not there, and the message says why.
expect_missing() {
  local words=$1 prefix=$2
  shift 2
  rm -rf "$place/components"
  if cmake -S "$root/tests/package/components" -B "$place/components" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" "$@" \
    >"$place/said" 2>&1; then
    echo "found with $*, expected: $words"
    return 1
  fi
  tr -s '\n ' ' ' <"$place/said" | grep -oF "$words" || { cat "$place/said"; echo "expected: $words"; return 1; }
}

# Components that do not exist, that were not installed, and that need what is not on this machine.
check_components() {
  local partial=$place/partial headers
  mkdir -p "$partial/lib" && cp -r "$sdk/lib/cmake" "$partial/lib" && rm -f "$partial"/lib/cmake/Candela/Candela_{runtime,systemc}* &&
    expect_missing "there is no component 'quantum': known are backend_api, runtime, simulator, systemc" "$sdk" -DWANTED=quantum &&
    expect_missing "component 'runtime' is not installed in $partial" "$partial" "-DWANTED=backend_api;runtime" &&
    expect_missing "component 'systemc' is not installed in $partial: Candela was built without SystemC" "$partial" -DWANTED=systemc &&
    expect_missing "component 'simulator' needs fmt" "$sdk" -DWANTED=simulator -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON || return 1
  [ -n "$has_systemc" ] || return 0
  headers=$(sed -n 's/^CANDELA_SYSTEMC_INCLUDE:PATH=//p' "$build/CMakeCache.txt")
  expect_missing "component 'systemc' needs SystemC" "$sdk" -DWANTED=systemc -DCMAKE_IGNORE_PATH="$headers"
}

# The simulator without SystemC: all engines that need nothing else, and what the one of the RTL says without its sources
# and without Verilator.
check_simulator() {
  local user=$place/simulator_user/simulator_user rtl=$sdk/share/candela/npu_rtl
  env -u CANDELA_NPU_RTL "$user" >"$place/said" && cat "$place/said" && grep -q "^exact: [1-9][0-9]* cycles" "$place/said" &&
    grep -q "^rtl: .*the sources of the RTL are neither in" "$place/said" &&
    CANDELA_NPU_RTL=$rtl CANDELA_CACHE_DIR=$place/simulator_user PATH=/none "$user" | grep "^rtl: .*verilator cannot be started"
}

# The NPU's part of a network on the platform: the example fails where memory is not that of the functional engine.
check_virtual_platform() {
  "$sdk/bin/candela" run "$digits/digits_int8.onnx" --dim N=1 --backend npu_sim --option npu_sim.npu=gem16 \
    --option npu_sim.binary="$place/programs" --random 1 &&
    "$place/virtual_platform/virtual_platform" "$place/programs/digits.npubin" --random 1 >"$place/said" &&
    cat "$place/said" && grep -q "interrupt at [0-9.]* us" "$place/said" && grep -q " 685312  macs" "$place/said" &&
    grep -q "memory is that of the functional engine: [0-9]* bytes of 4 regions" "$place/said"
}

phase "refuse to install what is not built" 2 refuse_unbuilt
phase "install" 2 install_build
has_systemc=$(find "$sdk" -name Candela_systemc.cmake) # where SystemC was found
phase "components that are missing" 2 check_components
phase "open the provider of ONNX Runtime" 2 check_onnxruntime
phase "build a user of the simulator" 3 build_project "$root/tests/package/simulator" simulator_user
phase "run it" 3 check_simulator
if [ -n "$has_systemc" ]; then
  phase "build virtual_platform" 3 build_project "$examples/virtual_platform" virtual_platform
  phase "run virtual_platform" 3 check_virtual_platform
fi
phase "build template" 3 build_project "$examples/template" template
phase "run template" 3 check_plugin template
phase "build hello_backend" 3 build_project "$examples/hello_backend" hello_backend
phase "run hello_backend" 3 check_plugin hello_backend
phase "build tiles_backend" 3 build_project "$examples/tiles_backend" tiles_backend
phase "run tiles_backend" 3 check_tiles_backend
if [ -e "$build/lib/candela/libcandela_opencl.so" ]; then # where OpenCL was found
  phase "build opencl" 3 build_project "$root/backends/opencl" opencl
  phase "run opencl" 3 check_plugin opencl 2
fi
phase "new backend in C++" 3 new_backend acme_npu2 c++
phase "its first primitive" 3 first_primitive acme_npu2 backend.cpp '};'
phase "new backend in C" 3 new_backend acme c
phase "its first primitive" 3 first_primitive acme backend.c '  default:'
phase "bare root" 3 bare_root "$place/new acme/build/lib/candela/libcandela_acme.so"
phase "build hello_run" 3 build_project "$examples/hello_run" hello_run
phase "run hello_run" 3 check_hello_run
phase "follow the porting guide" 10 "$root/scripts/porting_guide" "$sdk"
phase "follow the README" 5 "$root/scripts/readme" --build "$build"
