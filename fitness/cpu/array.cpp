#include "fitness/cpu/array.hpp"

#include <cstring>
#include <new>

namespace evo::cpu {
namespace {

constexpr std::size_t alignment = 1024; // at least cudaMalloc's
constexpr int nan_byte = 0xff;

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

} // namespace

Array::Array(std::string array_name, Space array_space, std::size_t bytes, int granule)
    : Range{.name = std::move(array_name),
            .space = array_space,
            .read_only = false,
            .begin = 0,
            .size = bytes,
            .cells = nullptr},
      cells_((bytes + granule - 1) / granule) {
  const std::size_t total = round_up(bytes) + 2 * red_zone;
  storage_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, total)));
  if (!storage_) {
    throw std::bad_alloc();
  }
  std::memset(storage_.get(), nan_byte, total);
  begin = reinterpret_cast<std::uintptr_t>(storage_.get()) + red_zone;
  cells = cells_.data();
}

void Array::poison() {
  std::memset(reinterpret_cast<void*>(begin), nan_byte, size);
}

} // namespace evo::cpu
