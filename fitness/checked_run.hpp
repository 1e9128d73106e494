// One run of a candidate on the card of which everything is checked.
#pragma once

#include <vector>

#include "fitness/candidate.hpp"
#include "fitness/oracle.hpp"

namespace evo {

struct Contents {
  Tensors inputs;
  at::Tensor reference;
  at::Tensor exact; // float64, of the first contents only
};

/// One size of the problem on the card.
struct Prepared {
  int size = 0;
  std::vector<int> dims;
  std::vector<std::int64_t> output_shape;
  Tensors live; // what candidates are given; the pointers stay, the contents change
  std::vector<Contents> contents;
  double reference_ms = 0;

  std::vector<const float*> pointers() const {
    std::vector<const float*> all;
    for (const at::Tensor& tensor : live) {
      all.push_back(tensor.data_ptr<float>());
    }
    return all;
  }

  std::size_t output_bytes() const { return contents[0].reference.nbytes(); }

  void load(const Contents& chosen) const {
    for (std::size_t i = 0; i < live.size(); ++i) {
      live[i].copy_(chosen.inputs[i]);
    }
  }

  /// Bit by bit: a NaN differs from no NaN.
  bool holds(const Contents& chosen) const {
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (!live[i].view(at::kInt).equal(chosen.inputs[i].view(at::kInt))) {
        return false;
      }
    }
    return true;
  }
};

/// One run between guard zones; Failure unless everything about it is right.
Accuracy check(const Oracle& oracle, const Candidate& candidate, const Prepared& prepared,
               const Contents& contents);

/// Failure unless every element of `output` is written and right.
Accuracy check_output(const Oracle& oracle, const at::Tensor& output, const Prepared& prepared,
                      const Contents& contents);

} // namespace evo
