#!/usr/bin/env bash
# bundle.sh: makes dist/evo-VERSION.tar.xz, with which `bash run.sh` works where CUDA and PyTorch are
# but Clang, root and network are not: evo with Clang linked in, the few libraries it needs beside it,
# and the sources of evo-worker, which is compiled there. Then unpacks it and tries it.
set -eu
cd "$(dirname "$0")/.."

version=$(sed -n 's/^project(evo VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=evo-$version
stage=dist/$name
archive=dist/$name.tar.xz
glibc_limit=2.35     # Ubuntu 22.04
libstdcxx_limit=3.4.30
megabytes_limit=60

fail() {
  echo "bundle.sh: $*" >&2
  exit 1
}

# The highest version of the symbols PREFIX_x.y that the files need.
newest_symbol() { # PREFIX FILE...
  objdump -T "${@:2}" | grep -oE "\b$1_[0-9.]+" | sed 's/.*_//' | sort -V | tail -n 1
}

no_newer_than() { # VERSION LIMIT
  [[ $(printf '%s\n' "$1" "$2" | sort -V | tail -n 1) == "$2" ]]
}

build() {
  # shellcheck disable=SC2016 # $ORIGIN is for the loader
  # Old dtags: the libraries beside evo also serve each other.
  nice cmake -G Ninja -S . -B build-bundle -DCMAKE_BUILD_TYPE=Release -DEVO_STATIC=ON \
    -DEVO_WORKER=OFF -DEVO_TESTS=OFF -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
    '-DCMAKE_INSTALL_RPATH=$ORIGIN/lib' -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
  nice ninja -C build-bundle evo
}

# The libraries that evo needs beyond what every system with a C++ compiler has.
shipped_libraries() {
  ldd build-bundle/evo | awk '$2 == "=>" { print $3 }' |
    grep -vE '/lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so'
}

fill_stage() {
  rm -rf "$stage"
  mkdir -p "$stage"/{lib,scripts,fitness,third_party/include}
  strip -o "$stage/evo" build-bundle/evo
  shipped_libraries | xargs -I{} cp -L {} "$stage/lib"
  git ls-files run.sh README.md CHANGELOG.md docs seeds tests/adversarial scripts/first_export.sh \
    scripts/build_worker.sh scripts/harness.py scripts/compare_peers.py scripts/triton_peer.py \
    'fitness/*' ':!fitness/cpu' |
    xargs cp --parents -t "$stage"
  cp -r /usr/include/nlohmann "$stage/third_party/include"
}

check_symbols() {
  local files=("$stage/evo" "$stage"/lib/*) newest
  newest=$(newest_symbol GLIBC "${files[@]}")
  no_newer_than "$newest" $glibc_limit || fail "needs glibc $newest, more than $glibc_limit"
  newest=$(newest_symbol GLIBCXX "${files[@]}")
  no_newer_than "$newest" $libstdcxx_limit || fail "needs GLIBCXX $newest"
}

try_archive() {
  local folder bytes
  bytes=$(stat -c %s "$archive")
  ((bytes < megabytes_limit * 1000000)) || fail "$archive has $bytes bytes"
  folder=$(mktemp -d)
  tar -xf "$archive" -C "$folder"
  (
    cd "$folder/$name"
    unset LD_LIBRARY_PATH
    ./evo --version
    ./evo mutators > /dev/null
    [[ -n $(./evo propose seeds/lora/tiled.cu) ]] || fail "evo proposes nothing for tiled.cu"
    bash scripts/first_export.sh > /dev/null
  )
  rm -rf "$folder"
}

build
fill_stage
check_symbols
tar -C dist -cf - "$name" | nice xz -T0 -6 > "$archive"
try_archive
ls -l "$archive"
