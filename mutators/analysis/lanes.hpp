// Integers of all threads of a block at once: the evaluator runs a block as one vector program.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace evo {

/// One integer per lane; a single one where all lanes agree, which is the common and cheap case.
/// Copies share their lanes.
class Ints {
public:
  Ints(std::int64_t value = 0) : value_(value) {}
  explicit Ints(std::vector<std::int64_t> lanes)
      : lanes_(std::make_shared<const std::vector<std::int64_t>>(std::move(lanes))) {}

  bool uniform() const { return lanes_ == nullptr; }
  std::int64_t operator[](std::size_t lane) const { return lanes_ ? (*lanes_)[lane] : value_; }
  /// The values of lanes that differ; one value otherwise.
  std::span<const std::int64_t> values() const {
    return lanes_ ? std::span<const std::int64_t>(*lanes_) : std::span(&value_, 1);
  }
  bool operator==(const Ints& other) const {
    return value_ == other.value_ &&
           (lanes_ == other.lanes_ || (lanes_ && other.lanes_ && *lanes_ == *other.lanes_));
  }

private:
  std::int64_t value_ = 0;
  std::shared_ptr<const std::vector<std::int64_t>> lanes_;
};

/// One value per lane, also where all lanes agree.
inline std::vector<std::int64_t> spread(const Ints& a, std::size_t lanes) {
  return a.uniform() ? std::vector<std::int64_t>(lanes, a[0])
                     : std::vector<std::int64_t>(a.values().begin(), a.values().end());
}

/// The lanes that execute.
class Mask {
public:
  explicit Mask(std::size_t lanes, bool on = true) : on_(lanes, on), count_(on ? lanes : 0) {}

  /// On where a value is not 0.
  explicit Mask(std::span<const std::int64_t> values) : on_(values.size()), count_(0) {
    for (std::size_t lane = 0; lane < on_.size(); ++lane) {
      on_[lane] = values[lane] != 0;
      count_ += on_[lane];
    }
  }

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

/// f(value) in every lane.
template <class F> Ints map(const Ints& a, F f) {
  if (a.uniform()) {
    return f(a[0]);
  }
  std::vector<std::int64_t> result(a.values().size());
  std::ranges::transform(a.values(), result.begin(), f);
  return Ints(std::move(result));
}

/// f(a, b) in every lane.
template <class F> Ints combine(const Ints& a, const Ints& b, F f) {
  if (b.uniform()) {
    return map(a, [f, y = b[0]](std::int64_t x) -> std::int64_t { return f(x, y); });
  }
  if (a.uniform()) {
    return map(b, [f, x = a[0]](std::int64_t y) -> std::int64_t { return f(x, y); });
  }
  std::vector<std::int64_t> result(a.values().size());
  std::ranges::transform(a.values(), b.values(), result.begin(), f);
  return Ints(std::move(result));
}

/// Whether every lane is in [low, high], active or not. Branch-free, so that it vectorises.
inline bool within(const Ints& values, std::int64_t low, std::int64_t high) {
  std::int64_t outside = 0; // its sign
  for (const std::int64_t value : values.values()) {
    outside |= (value - low) | (high - value);
  }
  return outside >= 0;
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

/// The shift that divides by `divisor`; -1 unless it is a power of two.
inline int shift_of(std::int64_t divisor) {
  return divisor > 0 && std::has_single_bit(static_cast<std::uint64_t>(divisor))
             ? std::countr_zero(static_cast<std::uint64_t>(divisor))
             : -1;
}

/// a / b as C does; 0 where b is 0. A power of two costs no division, which is most of the time
/// here.
inline Ints divided(const Ints& a, const Ints& b) {
  const int shift = b.uniform() ? shift_of(b[0]) : -1;
  if (shift >= 0 && within(a, 0, INT64_MAX)) {
    return map(a, [shift](std::int64_t x) { return x >> shift; });
  }
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return y == 0 ? 0 : x / y; });
}

/// a % b as C does; 0 where b is 0.
inline Ints remainder(const Ints& a, const Ints& b) {
  if (b.uniform() && shift_of(b[0]) >= 0 && within(a, 0, INT64_MAX)) {
    return map(a, [rest = b[0] - 1](std::int64_t x) { return x & rest; });
  }
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return y == 0 ? 0 : x % y; });
}

} // namespace evo
