// What the results for some contents must be close to, and how close a candidate's are.
#pragma once

#include "fitness/accuracy.hpp"
#include "fitness/oracle.hpp"

namespace evo {

struct Truth {
  at::Tensor reference;    // float32
  at::Tensor ideal_offset; // ideal - reference, float32: half the memory of the ideal
  CaseFigures figures;     // the reference's; a candidate's are 0
};

/// NoDevice when the reference fails.
Truth find_truth(const Oracle& oracle, const Tensors& inputs, int size);

/// The truth's figures and the output's. Waits for the device once.
CaseFigures measure(const Oracle& oracle, const Truth& truth, const at::Tensor& output);

} // namespace evo
