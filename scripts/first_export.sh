#!/usr/bin/env bash
# first_export.sh: prints the export of seeds/lora/naive.cu with bash's builtins alone, from the
# template that evo uses too (fitness/export_template.cu.in). tests/export_test.cpp holds the two
# against each other.
set -eu
[[ $0 != */* ]] || cd "${0%/*}/.."

kernel=$(<seeds/lora/naive.cu)
device=${kernel%%$'\n'extern \"C\"*}$'\n'
declare -A value=(
  [PROVENANCE]='// optimized_lora.cu, written by evo: a PyTorch extension, forward(W, X, A, B) -> Y.
// The seed naive.cu as it stands.
// Not judged yet.'
  [DEVICE]=$device
  [HOST]=${kernel:${#device}}$'\n'
  [ENTRY]=lora
  [PARAMETERS]='torch::Tensor W, torch::Tensor X, torch::Tensor A, torch::Tensor B'
  [CHECKS]='  const int d = static_cast<int>(W.size(0));
  const int r = static_cast<int>(A.size(1));
  check_input(W, "W", {d, d}, W.device());
  check_input(X, "X", {d, d}, W.device());
  check_input(A, "A", {d, r}, W.device());
  check_input(B, "B", {d, r}, W.device());'
  [FIRST]=W
  [OUTPUT]=Y
  [OUTPUT_SHAPE]='d, d'
  [DIMS]='d, r'
  [POINTERS]='W.data_ptr<float>(), X.data_ptr<float>(), A.data_ptr<float>(), B.data_ptr<float>()'
)

template=$(<fitness/export_template.cu.in)
while [[ $template == *@*@* ]]; do
  printf '%s' "${template%%@*}"
  template=${template#*@}
  printf '%s' "${value[${template%%@*}]}"
  template=${template#*@}
done
printf '%s\n' "$template"
