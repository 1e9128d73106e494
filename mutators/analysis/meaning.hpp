// What a kernel file computes, found by running it on ring elements instead of floats (ring.hpp):
// the evidence that two kernels compute the same polynomial of their inputs, however they are
// written and in whatever order they add. Rounding, to shorter types too, is taken as none: what it
// costs is for running to tell, and so is whether fp16 is taken for bf16.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "mutators/analysis/evaluator.hpp"
#include "mutators/kernel.hpp"

namespace evo {

/// Where buffers end, in bytes, by index of the parameter.
using BufferEnds = std::map<int, std::int64_t>;

/// The elements of the entry's outputs, by index of the parameter; nullopt where no thread wrote.
struct Meaning {
  std::map<int, std::vector<std::optional<std::int64_t>>> outputs;
  BufferEnds touched; // up to the last element read or written, of buffers that had no end

  bool operator==(const Meaning& other) const { return outputs == other.outputs; }
};

/// Runs everything that the entry launches when its integer parameters are `dims`: block after
/// block, and in each all threads together, so races are not seen (see footprint.hpp). Inputs are
/// the pointers to const; a `void *` is the workspace, which ends where <entry>_workspace says.
/// A Failure stands for what cannot be followed (atomics, divisions, comparisons of floats, numbers
/// that are not whole, ...), for an output that depends on what nothing wrote, and for an access
/// behind the end of a buffer that `ends` names.
std::variant<Meaning, Failure> meaning(const Kernel& kernel, const std::vector<std::int64_t>& dims,
                                       const BufferEnds& ends = {});

/// Small values of the entry's integer parameters that tell kernels apart: an odd size and a
/// multiple of 16, at which the launch with the largest tile of the matrix has several blocks along
/// both sides, the last of them ragged. Of tiles wider than 128 there is but one along a side, for
/// several would take long. Empty where nothing is launched.
std::vector<std::vector<std::int64_t>> telling_dims(const Kernel& kernel);

/// The same, several times cheaper, for kernels that differ only in what each thread of a block
/// does, in any block alike: the matrix is one tile, at the first size cut short on both sides, at
/// the second whole (of tiles wider than 144 a corner).
std::vector<std::vector<std::int64_t>> telling_dims_of_a_block(const Kernel& kernel);

/// Whether two kernels with one signature leave the same in their outputs under each of `dims`, the
/// second without touching anything behind what the first touches of a buffer. Of a kernel that
/// cannot be evaluated nothing is the same.
bool same_meaning(const Kernel& before, const Kernel& after,
                  const std::vector<std::vector<std::int64_t>>& dims);

/// The same under the telling dims of both.
bool same_meaning(const Kernel& before, const Kernel& after);

} // namespace evo
