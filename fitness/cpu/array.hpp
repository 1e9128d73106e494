// Memory that a kernel may touch: its bytes between red zones, and their shadow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fitness/cpu/shadow.hpp"

namespace evo::cpu {

enum class Space {
  Global,  // seen by all blocks
  Shared,  // by one block
  Private, // by one thread: its stack; constants of the library. Has no shadow.
};

inline constexpr std::size_t red_zone = 64 << 10; // bytes, on each side of an array

/// An interval of memory of one space.
struct Range {
  std::string name;
  Space space = Space::Private;
  bool read_only = false;
  std::uintptr_t begin = 0;
  std::size_t size = 0;  // bytes
  Cell* cells = nullptr; // one per granule; nullptr: not shadowed

  bool holds(std::uintptr_t address, std::size_t bytes) const {
    const std::size_t offset = address - begin;
    return offset < size && bytes <= size - offset;
  }
  /// Whether an address is in the range or in the red zones around it.
  bool is_near(std::uintptr_t address) const {
    return address - (begin - red_zone) < size + 2 * red_zone;
  }
};

/// A range that owns its memory: `size` bytes of NaN between red zones of NaN.
class Array : public Range {
public:
  Array(std::string array_name, Space array_space, std::size_t bytes, int granule);

  template <typename T> std::span<T> as() {
    return {reinterpret_cast<T*>(begin), size / sizeof(T)};
  }
  std::span<const Cell> shadow() const { return cells_; }
  void poison();

private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> storage_;
  std::vector<Cell> cells_;
};

} // namespace evo::cpu
