#!/usr/bin/env bash
# build_worker.sh: compiles ./evo-worker against the PyTorch that python3 imports (else libtorch-dev)
# with g++ alone: for a bundle on a machine that has CUDA and PyTorch but not all that CMake asks
# for. It has no model backend. Does nothing when the worker of that PyTorch is there already.
set -eu
cd "$(dirname "$0")/.."

nvcc=$(PATH="${CUDA_HOME:-/nowhere}/bin:$PATH:/usr/local/cuda/bin" command -v nvcc)
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
read -r torch abi version < <(python3 -c '
import os, torch
print(os.path.dirname(torch.__file__), int(torch.compiled_with_cxx11_abi()), torch.__version__)
' 2> /dev/null || echo /usr 1 libtorch-dev)

objects=build/worker
key="$torch $version $cuda"
if [[ -x evo-worker && $(cat $objects/key 2> /dev/null) == "$key" ]]; then
  exit
fi
mkdir -p $objects

flags=(-std=c++20 -O2 "-D_GLIBCXX_USE_CXX11_ABI=$abi" -I.)
for folder in third_party/include "$torch/include" "$torch/include/torch/csrc/api/include" \
  "$cuda/include"; do
  [[ $folder == /usr/include ]] || flags+=(-isystem "$folder") # else the compiler loses its own
done
libraries=(-l:libstdc++.so.6) # the one that LibTorch loads, never a second copy
for name in torch torch_cpu torch_cuda c10; do
  [[ $name == torch_cuda && ! -e $torch/lib/lib$name.so ]] || libraries+=("-l$name")
done

echo "build_worker.sh: compiling evo-worker against PyTorch $version" >&2
{ cat fitness/worker_sources.txt fitness/protocol_sources.txt && echo cpu_device_missing.cpp; } |
  xargs -P "$(nproc)" -I{} g++ "${flags[@]}" -c -o "$objects/{}.o" "fitness/{}"
g++ -o evo-worker.new $objects/*.o -Wl,--no-as-needed -Wl,--allow-shlib-undefined \
  -L"$torch/lib" "-Wl,-rpath,$torch/lib" "${libraries[@]}" \
  -L"$cuda/lib64" -lcudart_static -ldl -lrt -lpthread
mv -f evo-worker.new evo-worker
echo "$key" > $objects/key
