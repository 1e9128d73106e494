// Calling a kernel file's entry, whose arity is known only at run time.
#pragma once

#include <cstddef>
#include <span>

namespace evo {

/// What call_entry and call_workspace can pass.
inline constexpr std::size_t max_inputs = 8;
inline constexpr std::size_t max_dims = 4;

/// extern "C" cudaError_t entry(const float* <inputs>, float* output, int <dims>, void* workspace,
///                              cudaStream_t stream). Returns the cudaError_t.
int call_entry(void* entry, std::span<const float* const> inputs, float* output,
               std::span<const int> dims, void* workspace, void* stream);

/// extern "C" size_t entry_workspace(int <dims>), in bytes.
std::size_t call_workspace(void* entry_workspace, std::span<const int> dims);

} // namespace evo
