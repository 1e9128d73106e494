// Integers of all threads of a block at once: the evaluator runs a block as one vector program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace evo {

/// One integer per lane; a single one where all lanes agree, which is the common and cheap case.
class Ints {
public:
  Ints(std::int64_t value = 0) : value_(value) {}
  explicit Ints(std::vector<std::int64_t> lanes) : lanes_(std::move(lanes)) {}

  bool uniform() const { return lanes_.empty(); }
  std::int64_t operator[](std::size_t lane) const { return lanes_.empty() ? value_ : lanes_[lane]; }
  bool operator==(const Ints&) const = default;

private:
  std::int64_t value_ = 0;
  std::vector<std::int64_t> lanes_;
};

/// The lanes that execute.
class Mask {
public:
  explicit Mask(std::size_t lanes, bool on = true) : on_(lanes, on), count_(on ? lanes : 0) {}

  std::size_t size() const { return on_.size(); }
  std::size_t count() const { return count_; }
  bool any() const { return count_ != 0; }
  bool all() const { return count_ == on_.size(); }
  bool operator[](std::size_t lane) const { return on_[lane] != 0; }
  void set(std::size_t lane, bool on) {
    count_ += std::size_t{on} - on_[lane];
    on_[lane] = on;
  }

  Mask& operator&=(const Mask& other) { return combine(other, std::bit_and<>{}); }
  Mask& operator|=(const Mask& other) { return combine(other, std::bit_or<>{}); }
  Mask& operator-=(const Mask& other) {
    return combine(other, [](int ours, int others) { return ours & ~others; });
  }
  bool operator==(const Mask&) const = default;

private:
  template <class F> Mask& combine(const Mask& other, F f) {
    count_ = 0;
    for (std::size_t lane = 0; lane < on_.size(); ++lane) {
      on_[lane] = static_cast<std::uint8_t>(f(on_[lane], other.on_[lane]));
      count_ += on_[lane];
    }
    return *this;
  }

  std::vector<std::uint8_t> on_;
  std::size_t count_;
};

/// f(a, b) in every lane; the lane number matters only to values that differ between lanes.
template <class F> Ints combine(const Ints& a, const Ints& b, std::size_t lanes, F f) {
  if (a.uniform() && b.uniform()) {
    return f(a[0], b[0]);
  }
  std::vector<std::int64_t> result(lanes);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    result[lane] = f(a[lane], b[lane]);
  }
  return Ints(std::move(result));
}

/// `ours` where the mask is on, `others` elsewhere.
inline Ints blend(const Mask& mask, const Ints& ours, const Ints& others) {
  if (mask.all() || ours == others) {
    return ours;
  }
  std::vector<std::int64_t> result(mask.size());
  for (std::size_t lane = 0; lane < mask.size(); ++lane) {
    result[lane] = mask[lane] ? ours[lane] : others[lane];
  }
  return Ints(std::move(result));
}

} // namespace evo
