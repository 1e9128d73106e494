// Memory that shows who wrote where.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

namespace evo {

/// A quiet NaN that no arithmetic makes: what is left of it was never written.
inline constexpr std::int32_t poison_word = 0x7fc0dead;

/// Poisoned memory between two poisoned guard zones of 4 MiB, aligned like torch's own.
class GuardedBuffer {
public:
  /// c10::Error when there is not that much memory.
  GuardedBuffer(std::size_t bytes, at::Device device);

  void* data() const { return payload_.data_ptr(); }
  at::Tensor as_floats(const std::vector<std::int64_t>& shape) const;
  /// Both guard zones are as they were.
  bool intact() const;

private:
  at::Tensor memory_;
  at::Tensor payload_; // int32
};

/// How many elements of a float tensor still hold the poison.
std::int64_t count_poison(const at::Tensor& floats);

} // namespace evo
