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
  /// Poisons the guard zones again.
  void guard() const { guards().fill_(poison_word); }
  /// Whether a guard zone is not as it was: one boolean on the device, not yet waited for.
  at::Tensor damaged() const;

private:
  at::Tensor guards() const;

  at::Tensor memory_;
  at::Tensor payload_; // int32
};

/// How many elements of a float tensor still hold the poison: one number on the device.
at::Tensor count_poison(const at::Tensor& floats);

} // namespace evo
