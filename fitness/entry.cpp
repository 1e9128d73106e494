#include "fitness/entry.hpp"

#include <stdexcept>
#include <utility>

namespace evo {
namespace {

template <std::size_t> using Input = const float*;
template <std::size_t> using Dim = int;

struct EntryArguments {
  std::span<const float* const> inputs;
  float* output;
  std::span<const int> dims;
  void* workspace;
  void* stream;
};

template <std::size_t... I, std::size_t... D>
int call(void* entry, const EntryArguments& arguments, std::index_sequence<I...>,
         std::index_sequence<D...>) {
  using Function = int (*)(Input<I>..., float*, Dim<D>..., void*, void*);
  return reinterpret_cast<Function>(entry)(arguments.inputs[I]..., arguments.output,
                                           arguments.dims[D]..., arguments.workspace,
                                           arguments.stream);
}

template <std::size_t... D>
std::size_t call(void* entry_workspace, std::span<const int> dims, std::index_sequence<D...>) {
  using Function = std::size_t (*)(Dim<D>...);
  return reinterpret_cast<Function>(entry_workspace)(dims[D]...);
}

/// Calls f.operator()<count>() for a count in [1, Max].
template <std::size_t Max, typename F> auto with_count(std::size_t count, F f) {
  if constexpr (Max == 1) {
    if (count != 1) {
      throw std::out_of_range("an entry with more inputs or dims than call_entry can pass");
    }
    return f.template operator()<1>();
  } else {
    return count == Max ? f.template operator()<Max>() : with_count<Max - 1>(count, f);
  }
}

} // namespace

int call_entry(void* entry, std::span<const float* const> inputs, float* output,
               std::span<const int> dims, void* workspace, void* stream) {
  const EntryArguments arguments{inputs, output, dims, workspace, stream};
  return with_count<max_inputs>(inputs.size(), [&]<std::size_t Inputs>() {
    return with_count<max_dims>(dims.size(), [&]<std::size_t Dims>() {
      return call(entry, arguments, std::make_index_sequence<Inputs>(),
                  std::make_index_sequence<Dims>());
    });
  });
}

std::size_t call_workspace(void* entry_workspace, std::span<const int> dims) {
  return with_count<max_dims>(dims.size(), [&]<std::size_t Dims>() {
    return call(entry_workspace, dims, std::make_index_sequence<Dims>());
  });
}

} // namespace evo
