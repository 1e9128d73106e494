#!/usr/bin/env bash
# setup.sh [--checks]: installs what building evo needs, on Debian 12 and Ubuntu 22.04 and 24.04;
# with --checks also what .ci/run needs. What is there already is left alone. Without rights or
# network it prints the line to run by hand and exits 1.
set -u

have() { command -v "$1" > /dev/null; }

as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    sudo -n "$@"
  fi
}

updated=false
update() {
  $updated || as_root apt-get -qq update 2> /dev/null && updated=true
}

# The newest LLVM that is installed (CMake takes it), else the newest that apt knows.
find_llvm() {
  local version
  for version in 19 18 17 16 15; do
    have "llvm-config-$version" && llvm=$version && return
  done
  update
  for version in 19 18 17 16 15; do
    llvm=$version
    [[ -z $(apt-cache policy "libclang-$version-dev" 2> /dev/null) ]] || return
  done
}

python_has() { have python3 && python3 -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$1'))"; }

packages() {
  have g++ || echo g++
  have cmake || echo cmake
  have ninja || echo ninja-build
  have ccache || echo ccache
  have python3 || echo python3
  python_has torch || echo libtorch-dev
  printf '%s\n' "llvm-$llvm-dev" "libclang-$llvm-dev" "libclang-cpp$llvm" libtbb-dev \
    libboost-dev libboost-context-dev \
    libcli11-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libtomlplusplus-dev libsqlite3-dev libgtest-dev \
    libgmock-dev
  if [[ ${1-} == --checks ]]; then
    printf '%s\n' "clang-format-$llvm" "clang-tidy-$llvm" shellcheck
  fi
}

# Those of the named packages that are not installed.
missing() {
  local installed name
  installed=" $(dpkg-query -W -f '${binary:Package}=${db:Status-Status} ' "$@" 2> /dev/null)"
  for name in "$@"; do
    [[ $installed =~ \ $name(:[a-z0-9]+)?=installed\  ]] || echo "$name"
  done
}

install_packages() {
  local name known=()
  if ! have apt-get; then
    echo "setup.sh knows apt only; this system needs what these packages hold: $*" >&2
    return 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  if update; then
    for name in "$@"; do
      if [[ -n $(apt-cache policy "$name" 2> /dev/null) ]]; then
        known+=("$name")
      else
        echo "setup.sh: this system has no package $name${remedy[$name]-}" >&2
      fi
    done
    as_root apt-get install -y -qq --no-install-recommends "${known[@]}" || known=()
  fi
  ((${#known[@]} == $#)) && return
  echo "setup.sh could not install everything; as root, with a network, run:" \
    "apt-get update && apt-get install -y --no-install-recommends $*" >&2
  return 1
}

declare -A remedy=(
  [libtorch-dev]="; install PyTorch for python3 instead: pip install torch"
)

# NVRTC 12.4 and its headers, with which tests/nvrtc_check.py compiles for old architectures.
install_nvrtc() {
  local home=${NVRTC_HOME:-$HOME/.cache/evo/nvrtc}
  if [[ -d $home/nvidia/cuda_nvrtc && -d $home/nvidia/cuda_runtime ]]; then
    return
  fi
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --target "$home" \
    'nvidia-cuda-nvrtc-cu12==12.4.*' 'nvidia-cuda-runtime-cu12==12.4.*' ||
    echo "setup.sh could not install NVRTC 12.4; its tests will be skipped" >&2
}

find_llvm
mapfile -t wanted < <(packages "$@")
mapfile -t absent < <(missing "${wanted[@]}")
status=0
((${#absent[@]} == 0)) || install_packages "${absent[@]}" || status=1
[[ ${1-} != --checks ]] || install_nvrtc
exit $status
