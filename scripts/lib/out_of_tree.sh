#!/usr/bin/env bash
# out_of_tree.sh BUILD: install a build, then build and run against it, outside of this tree, what a user would:
# the template backend, the small port and the embedding example. Each is a CMake project of its own.
set -euo pipefail
. "$(dirname "$0")/common.sh"

build=$(cd "${1:?a build folder}" && pwd)
prefix=$build/install
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
digits=$root/examples/digits

install_build() {
  rm -rf "$prefix" &&
    cmake --install "$build" --prefix "$prefix" >"$place/install.log" || { cat "$place/install.log"; return 1; }
}

# build_project FOLDER: copied first, so that no path of this tree can help it.
build_project() {
  local name=${1##*/}
  cp -r "$root/$1" "$place/$name" &&
    cmake -S "$place/$name" -B "$place/$name/out" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" &&
    cmake --build "$place/$name/out" -j "$(jobs_here)"
}

# run_digits PLUGIN: the digits model on a plugin file, by the installed tool.
run_digits() {
  "$prefix/bin/candela" run "$digits/digits.onnx" --backend "$1" --input "images=$digits/test_images.npy" \
    --labels "$digits/test_labels.npy"
}

check_plugin() {
  local plugin
  plugin=$(find "$place/$1/out" -name '*.so' -type f)
  [ "$(echo "$plugin" | grep -c .)" = 1 ] || { echo "$1: expected one plugin, found: ${plugin:-none}"; return 1; }
  python3 -B "$root/tests/hygiene/check_symbols.py" "$plugin" && run_digits "$plugin"
}

check_hello_run() {
  local program
  program=$(find "$place/hello_run/out" -name hello_run -type f -perm -u+x)
  [ -n "$program" ] || { echo "hello_run: no program of that name was built"; return 1; }
  "$program" "$digits/digits.onnx" "$digits/test_images.npy"
}

phase "install" 2 install_build
for project in backends/template examples/hello_backend; do
  phase "build $project" 3 build_project "$project"
  phase "run $project" 3 check_plugin "${project##*/}"
done
phase "build examples/hello_run" 3 build_project examples/hello_run
phase "run examples/hello_run" 3 check_hello_run
