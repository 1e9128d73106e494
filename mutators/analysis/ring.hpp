// Floats as elements of the ring of integers modulo 2^64. A sum of products is a polynomial of the
// inputs, and two polynomials that agree on pseudo-random inputs are, in all likelihood, the same.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "mutators/analysis/evaluator.hpp"
#include "mutators/analysis/lanes.hpp"

namespace evo {

/// One element per lane.
struct Ring {
  Ints value;
  std::shared_ptr<const Mask> undefined; // lanes in which nothing gave it a value; nullptr: none

  /// What a variable holds that nothing was assigned to.
  static Ring nothing(std::size_t lanes);
  bool is_defined_in(std::size_t lane) const { return !undefined || !(*undefined)[lane]; }
  bool operator==(const Ring& other) const;
};

Ring operator+(const Ring& a, const Ring& b);
Ring operator-(const Ring& a, const Ring& b);
Ring operator*(const Ring& a, const Ring& b);

/// `ours` where the mask is on, `others` elsewhere.
Ring blend(const Mask& mask, const Ring& ours, const Ring& others);

/// The floats in a run's arrays, and the registers of several numbers (two fp16 side by side).
/// What nothing wrote is undefined, but for the buffers that are inputs, whose elements are a fixed
/// hash of buffer and index.
class RingMemory {
public:
  explicit RingMemory(std::set<int> inputs) : inputs_(std::move(inputs)) {}

  /// `elements` are inside the array in all active lanes. In local memory each lane has its own.
  /// An element that holds several numbers is undefined.
  Ring load(int array, const Array& info, const Ints& elements, const Mask& active);
  void store(int array, const Array& info, const Ints& elements, const Ring& value,
             const Mask& active);
  /// The same for all numbers of an element, from its low bits up. Those that no element of the
  /// array has are left out.
  std::vector<Ring> load_register(int array, const Array& info, const Ints& elements,
                                  const Mask& active);
  void store_register(int array, const Array& info, const Ints& elements,
                      const std::vector<Ring>& numbers, const Mask& active);
  /// Makes all elements of an array that holds no input undefined.
  void forget(int array) {
    if (std::cmp_less(array, cells_.size())) {
      cells_[static_cast<std::size_t>(array)].clear();
    }
  }

  enum class State : std::uint8_t { Untouched, Undefined, Defined };
  struct Cells {
    std::vector<std::int64_t> values;
    std::vector<State> states;
    std::size_t touched = 0; // without a declared end: elements up to the last one touched
  };
  /// What an array holds, up to some element behind the last one touched, the first number of each;
  /// nullptr: nothing.
  const Cells* cells(int array) const;

private:
  /// An array, and the place of a number in its element.
  struct Key {
    int array;
    int number;
  };

  Cells& entry(Key key);
  Cells& reach(Key key, const Array& info, const Ints& elements, const Mask& active);
  Ring load_number(Key key, const Array& info, const Ints& elements, const Mask& active);
  void store_number(Key key, const Array& info, const Ints& elements, const Ring& value,
                    const Mask& active);
  int numbers_in(int array) const; // in an element at most

  std::set<int> inputs_;                  // by Buffer::id
  std::vector<std::vector<Cells>> cells_; // by array and number
};

} // namespace evo
