// Asynchronous copies from global to shared memory. All lanes run together, so their groups are
// those of the block; what is copied is there after the wait, and nothing before.
#include <clang/AST/Expr.h>

#include "mutators/analysis/interpreter.hpp"

namespace evo {
namespace {

/// The number of the `index`-th element of `bytes` from a place on.
Ints element_at(const Place& place, std::int64_t index, std::int64_t bytes) {
  return map(place.offset, [=](std::int64_t at) { return at / bytes + index; });
}

} // namespace

/// Whether `name` is one of the functions that copy asynchronously; then it is done.
bool Interpreter::copies(const std::string& name, const std::vector<Value>& arguments,
                         const clang::CallExpr& expression) {
  const bool commits = name == "__pipeline_commit";
  const bool waits = name == "__pipeline_wait_prior";
  if (name == "__pipeline_memcpy_async") {
    begin_copy(arguments, expression);
    return true;
  }
  if (!commits && !waits) {
    return false;
  }
  if (!mask_.all()) {
    unknown(expression, "threads disagree on their groups of copies");
  }
  if (commits) {
    groups_in_flight_.push_back(std::move(open_group_));
    open_group_.clear();
    return true;
  }
  const std::int64_t left = ints(arguments[0], expression)[0];
  while (std::cmp_greater(groups_in_flight_.size(), left)) {
    for (const AsyncCopy& copy : groups_in_flight_.front()) {
      arrive(copy);
    }
    groups_in_flight_.pop_front();
  }
  return true;
}

void Interpreter::begin_copy(const std::vector<Value>& arguments,
                             const clang::CallExpr& expression) {
  const Ints& size = ints(arguments[2], expression);
  const Ints& zeros = ints(arguments[3], expression);
  const std::int64_t bytes = size[0];
  if (!size.uniform() || (bytes != 4 && bytes != 8 && bytes != 16)) {
    unknown(expression, "an asynchronous copy of other than 4, 8 or 16 bytes is not followed");
  }
  const auto layout =
      std::make_shared<Layout>(Layout{.bytes = bytes, .align = bytes, .element = {}, .fields = {}});
  const auto with_layout = [&](Place place) {
    place.layout = layout;
    return place;
  };
  AsyncCopy copy{.to = with_layout(place(arguments[0], expression)),
                 .from = with_layout(place(arguments[1], expression)),
                 .mask = mask_,
                 .reads = mask_,
                 .site = expression.getArg(0)->IgnoreParenImpCasts()};
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    if (mask_[lane] && zeros[lane] != 0 && zeros[lane] != bytes) {
      unknown(expression, "a copy that is zeros in part is not followed");
    }
    copy.reads.set(lane, mask_[lane] && zeros[lane] == 0);
  }
  mask_ = copy.reads;
  touch(copy.from, false, *expression.getArg(1)->IgnoreParenImpCasts());
  mask_ = copy.mask;
  touch(copy.to, true, *copy.site, true);
  const Array& array = arrays_[copy.to.array];
  const std::int64_t unit = array.element_bytes;
  if (memory_ != nullptr && unit != arrays_[copy.from.array].element_bytes) {
    unknown(expression, "a copy to elements of another size is not followed");
  }
  copy.elements = bytes / unit;
  for (std::int64_t i = 0; memory_ != nullptr && i < copy.elements; ++i) {
    memory_->store(copy.to.array, array, element_at(copy.to, i, unit), Ring::nothing(lanes_),
                   mask_);
  }
  open_group_.push_back(std::move(copy));
}

void Interpreter::arrive(const AsyncCopy& copy) {
  const Mask active = mask_;
  mask_ = copy.mask;
  touch(copy.to, true, *copy.site);
  const Array& array = arrays_[copy.to.array];
  for (std::int64_t i = 0; memory_ != nullptr && i < copy.elements; ++i) {
    std::vector<Ring> numbers{Ring{}};
    if (copy.reads.any()) {
      numbers = memory_->load_register(copy.from.array, arrays_[copy.from.array],
                                       element_at(copy.from, i, array.element_bytes), copy.reads);
      for (std::size_t number = 0; number < numbers.size(); ++number) {
        const Ring zero = number == 0 ? Ring{} : Ring::nothing(lanes_);
        numbers[number] = blend(copy.reads, numbers[number], zero);
      }
    }
    memory_->store_register(copy.to.array, array, element_at(copy.to, i, array.element_bytes),
                            numbers, mask_);
  }
  mask_ = active;
}

} // namespace evo
