#include "mutators/analysis/ring.hpp"

#include <algorithm>

namespace evo {
namespace {

/// Without the undefined behaviour of signed overflow.
template <class F> auto wrapping(F f) {
  return [f](std::int64_t x, std::int64_t y) {
    return static_cast<std::int64_t>(
        f(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y)));
  };
}

std::shared_ptr<const Mask> either(const std::shared_ptr<const Mask>& a,
                                   const std::shared_ptr<const Mask>& b) {
  if (a == nullptr || b == nullptr || a == b) {
    return a == nullptr ? b : a;
  }
  Mask both = *a;
  both |= *b;
  return std::make_shared<const Mask>(std::move(both));
}

template <class F> Ring in_lanes(const Ring& a, const Ring& b, F f) {
  return {combine(a.value, b.value, wrapping(f)), either(a.undefined, b.undefined)};
}

/// SplitMix64's mixing of a number that is different for every element of every buffer.
std::int64_t input(int buffer, std::uint64_t element) {
  std::uint64_t x = (static_cast<std::uint64_t>(buffer) << 40U) + element + 1;
  x *= 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<std::int64_t>(x ^ (x >> 31U));
}

std::int64_t highest(const Ints& elements, const Mask& active) {
  if (elements.uniform() || active.all()) {
    return std::ranges::max(elements.values());
  }
  std::int64_t result = 0;
  for (std::size_t lane = 0; lane < active.size(); ++lane) {
    result = std::max(result, active[lane] ? elements[lane] : 0);
  }
  return result;
}

/// f(lane, cell) in every active lane, whose cell in local memory stands beside the others'.
template <class F> void for_each_cell(const Ints& elements, const Mask& active, bool local, F f) {
  const std::size_t lanes = active.size();
  const auto visit = [&](auto cell) {
    if (active.all()) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        f(lane, cell(lane));
      }
      return;
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      if (active[lane]) {
        f(lane, cell(lane));
      }
    }
  };
  const auto values = elements.values();
  const auto at = [&](std::size_t lane) { return static_cast<std::size_t>(values[lane]); };
  if (elements.uniform()) {
    const std::size_t row = local ? at(0) * lanes : at(0);
    const std::size_t step = local ? 1 : 0;
    visit([=](std::size_t lane) { return row + step * lane; });
  } else if (local) {
    visit([&](std::size_t lane) { return at(lane) * lanes + lane; });
  } else {
    visit(at);
  }
}

} // namespace

Ring Ring::nothing(std::size_t lanes) {
  return {0, std::make_shared<const Mask>(lanes)};
}

bool Ring::operator==(const Ring& other) const {
  const bool same = undefined == other.undefined ||
                    (undefined && other.undefined && *undefined == *other.undefined);
  return same && value == other.value;
}

Ring operator+(const Ring& a, const Ring& b) {
  return in_lanes(a, b, std::plus<std::uint64_t>());
}
Ring operator-(const Ring& a, const Ring& b) {
  return in_lanes(a, b, std::minus<std::uint64_t>());
}
Ring operator*(const Ring& a, const Ring& b) {
  return in_lanes(a, b, std::multiplies<std::uint64_t>());
}

Ring blend(const Mask& mask, const Ring& ours, const Ring& others) {
  if (mask.all()) {
    return ours;
  }
  Ring result{blend(mask, ours.value, others.value), nullptr};
  if (ours.undefined || others.undefined) {
    Mask undefined(mask.size(), false);
    for (std::size_t lane = 0; lane < mask.size(); ++lane) {
      undefined.set(lane, !(mask[lane] ? ours : others).is_defined_in(lane));
    }
    if (undefined.any()) {
      result.undefined = std::make_shared<const Mask>(std::move(undefined));
    }
  }
  return result;
}

RingMemory::Cells& RingMemory::entry(Key key) {
  const auto array = static_cast<std::size_t>(key.array);
  const auto number = static_cast<std::size_t>(key.number);
  if (array >= cells_.size()) {
    cells_.resize(array + 1);
  }
  if (number >= cells_[array].size()) {
    cells_[array].resize(number + 1);
  }
  return cells_[array][number];
}

RingMemory::Cells& RingMemory::reach(Key key, const Array& info, const Ints& elements,
                                     const Mask& active) {
  Cells& cells = entry(key);
  if (info.elements < 0) {
    cells.touched =
        std::max(cells.touched, static_cast<std::size_t>(highest(elements, active) + 1));
  }
  std::size_t needed = info.elements < 0 ? cells.touched : static_cast<std::size_t>(info.elements);
  if (info.space == Array::Space::Local) {
    needed *= active.size();
  }
  constexpr std::size_t most_elements = 1U << 26U;
  if (needed > most_elements) {
    throw Failure{Failure::Kind::Unknown, "an array is too large to follow"};
  }
  const std::size_t known = cells.values.size();
  if (needed > known) {
    const std::size_t size = info.elements < 0 ? std::max(needed, 2 * known) : needed;
    const bool is_input =
        key.number == 0 && info.space == Array::Space::Global && inputs_.contains(info.buffer);
    cells.values.resize(size);
    cells.states.resize(size, is_input ? State::Defined : State::Untouched);
    for (std::size_t element = known; is_input && element < size; ++element) {
      cells.values[element] = input(info.buffer, element);
    }
  }
  return cells;
}

Ring RingMemory::load_number(Key key, const Array& info, const Ints& elements, const Mask& active) {
  const Cells& cells = reach(key, info, elements, active);
  const std::size_t lanes = active.size();
  const bool local = info.space == Array::Space::Local;
  if (elements.uniform() && !local) {
    const auto element = static_cast<std::size_t>(elements[0]);
    return cells.states[element] == State::Defined ? Ring{cells.values[element], nullptr}
                                                   : Ring::nothing(lanes);
  }
  std::vector<std::int64_t> values(lanes);
  std::size_t defined = 0;
  for_each_cell(elements, active, local, [&](std::size_t lane, std::size_t cell) {
    values[lane] = cells.values[cell];
    defined += cells.states[cell] == State::Defined ? 1 : 0;
  });
  Ring result{Ints(std::move(values)), nullptr};
  if (defined != active.count()) {
    Mask undefined(lanes, false);
    for_each_cell(elements, active, local, [&](std::size_t lane, std::size_t cell) {
      undefined.set(lane, cells.states[cell] != State::Defined);
    });
    result.undefined = std::make_shared<const Mask>(std::move(undefined));
  }
  return result;
}

void RingMemory::store_number(Key key, const Array& info, const Ints& elements, const Ring& value,
                              const Mask& active) {
  Cells& cells = reach(key, info, elements, active);
  const bool local = info.space == Array::Space::Local;
  for_each_cell(elements, active, local, [&](std::size_t lane, std::size_t cell) {
    cells.values[cell] = value.value[lane];
    cells.states[cell] = value.is_defined_in(lane) ? State::Defined : State::Undefined;
  });
}

int RingMemory::numbers_in(int array) const {
  const auto known = static_cast<std::size_t>(array);
  return known < cells_.size() ? std::max(1, static_cast<int>(cells_[known].size())) : 1;
}

Ring RingMemory::load(int array, const Array& info, const Ints& elements, const Mask& active) {
  Ring first = load_number({array, 0}, info, elements, active);
  const int numbers = numbers_in(array);
  for (int number = 1; number < numbers; ++number) {
    const Ring other = load_number({array, number}, info, elements, active);
    Mask several = active;
    several -= other.undefined ? *other.undefined : Mask(active.size(), false);
    first = blend(several, Ring::nothing(active.size()), first);
  }
  return first;
}

void RingMemory::store(int array, const Array& info, const Ints& elements, const Ring& value,
                       const Mask& active) {
  store_register(array, info, elements, {value}, active);
}

std::vector<Ring> RingMemory::load_register(int array, const Array& info, const Ints& elements,
                                            const Mask& active) {
  std::vector<Ring> result;
  const int numbers = numbers_in(array);
  for (int number = 0; number < numbers; ++number) {
    result.push_back(load_number({array, number}, info, elements, active));
  }
  return result;
}

void RingMemory::store_register(int array, const Array& info, const Ints& elements,
                                const std::vector<Ring>& numbers, const Mask& active) {
  const int count = std::max(numbers_in(array), static_cast<int>(numbers.size()));
  for (int number = 0; number < count; ++number) {
    const bool stored = std::cmp_less(number, numbers.size());
    store_number({array, number}, info, elements,
                 stored ? numbers[static_cast<std::size_t>(number)] : Ring::nothing(active.size()),
                 active);
  }
}

const RingMemory::Cells* RingMemory::cells(int array) const {
  const auto known = static_cast<std::size_t>(array);
  return known < cells_.size() && !cells_[known].empty() ? &cells_[known].front() : nullptr;
}

} // namespace evo
