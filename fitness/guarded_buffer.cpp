#include "fitness/guarded_buffer.hpp"

namespace evo {
namespace {

constexpr std::int64_t guard_words = 1 << 20;

} // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes, at::Device device) {
  const auto words =
      static_cast<std::int64_t>((bytes + sizeof(std::int32_t) - 1) / sizeof(std::int32_t));
  memory_ =
      at::full({words + 2 * guard_words}, poison_word, at::TensorOptions(at::kInt).device(device));
  payload_ = memory_.narrow(0, guard_words, words);
}

at::Tensor GuardedBuffer::as_floats(const std::vector<std::int64_t>& shape) const {
  return payload_.view(at::kFloat).view(shape);
}

at::Tensor GuardedBuffer::guards() const {
  return memory_.as_strided({2, guard_words}, {memory_.size(0) - guard_words, 1});
}

at::Tensor GuardedBuffer::damaged() const {
  return guards().ne(poison_word).any();
}

at::Tensor count_poison(const at::Tensor& floats) {
  return floats.view(at::kInt).eq(poison_word).sum();
}

} // namespace evo
