# The Debian packages that the project needs: the one list. docs/dev/dependencies.md says why each is there.

packages_build="g++ cmake ninja-build ccache git ca-certificates
  libonnx-dev libprotobuf-dev protobuf-compiler libflatbuffers-dev flatbuffers-compiler
  libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libfmt-dev libssl-dev libdlpack-dev
  llvm-19-dev ocl-icd-opencl-dev opencl-headers libsystemc-dev
  pybind11-dev python3-dev"
packages_test="clang-format-19 python3 python3-numpy python3-onnx
  python3-pip python3-setuptools python3-venv python3-wheel libgtest-dev libgmock-dev libbenchmark-dev llvm-19-tools verilator libonnx-testdata pkgconf groff-base zsh fish python3-sphinx python3-myst-parser furo qemu-user pocl-opencl-icd
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross
  gcc-arm-none-eabi picolibc-arm-none-eabi qemu-system-arm lld-19 nodejs"
packages_nightly="yosys chromium clang-tidy-19 dpkg-dev lintian mmdebstrap mlir-19-tools"

# missing_packages GROUP...: those of the groups that are not installed, one a line.
missing_packages() {
  local group variable package
  for group in "$@"; do
    variable="packages_$group"
    for package in ${!variable}; do
      [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
  done
}

# install_packages GROUP...: install what is missing, and nothing when nothing is.
install_packages() {
  local missing as_root="" log attempt
  command -v dpkg-query >/dev/null || die "this is not a Debian system; the packages are listed in scripts/lib/packages.sh"
  missing=$(missing_packages "$@" | tr '\n' ' ')
  if [ -z "$missing" ]; then
    echo "all packages are installed"
    return 0
  fi
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || die "packages are missing; as root: apt-get install --no-install-recommends $missing"
    as_root="sudo -n"
  fi
  echo "installing: $missing"
  log=$(mktemp)
  # Another apt may hold the lock, and mirrors have bad moments: wait for the first, try again after the second.
  for attempt in 1 2 3; do
    if { [ -n "${apt_updated:-}" ] || $as_root env DEBIAN_FRONTEND=noninteractive apt-get $apt_options update; } >"$log" 2>&1; then
      apt_updated=yes
      if $as_root env DEBIAN_FRONTEND=noninteractive apt-get $apt_options install -y --no-install-recommends $missing >"$log" 2>&1; then
        rm -f "$log"
        return 0
      fi
    fi
    echo "attempt $attempt of 3 failed"
    [ "$attempt" = 3 ] || sleep $((attempt * 10))
  done
  tail -n 20 "$log" >&2
  rm -f "$log"
  die "could not install: $missing"
}
apt_options="-q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0"
