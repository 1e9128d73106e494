#include "fitness/checked_run.hpp"

#include "fitness/cuda_check.hpp"
#include "fitness/guarded_buffer.hpp"

namespace evo {
namespace {

constexpr std::size_t largest_workspace = std::size_t{1} << 40; // more is an overflow

GuardedBuffer guarded_workspace(const Oracle& oracle, const Candidate& candidate,
                                const Prepared& prepared) {
  const std::size_t bytes = candidate.workspace_bytes(prepared.dims);
  const Failure too_large{Verdict::OverLimits,
                          concat("a workspace of ", bytes, " bytes at ",
                                 oracle.at_size(prepared.size), " does not fit")};
  if (bytes > largest_workspace) {
    throw too_large;
  }
  try {
    return GuardedBuffer(bytes, oracle.device());
  } catch (const c10::Error&) { // out of memory
    throw too_large;
  }
}

} // namespace

Accuracy check(const Oracle& oracle, const Candidate& candidate, const Prepared& prepared,
               const Contents& contents) {
  const GuardedBuffer workspace = guarded_workspace(oracle, candidate, prepared);
  const GuardedBuffer output(prepared.output_bytes(), oracle.device());
  prepared.load(contents);
  candidate.launch(prepared.pointers(), static_cast<float*>(output.data()), prepared.dims,
                   workspace.data());
  check_cuda(cudaDeviceSynchronize(), concat("a run at ", oracle.at_size(prepared.size)));
  if (!output.intact() || !workspace.intact()) {
    throw Failure{Verdict::OutOfBounds,
                  concat("it writes outside its ", output.intact() ? "workspace" : "output", " at ",
                         oracle.at_size(prepared.size))};
  }
  if (!prepared.holds(contents)) {
    throw Failure{Verdict::TouchedInput,
                  concat("it changes an input at ", oracle.at_size(prepared.size))};
  }
  return check_output(oracle, output.as_floats(prepared.output_shape), prepared, contents);
}

Accuracy check_output(const Oracle& oracle, const at::Tensor& output, const Prepared& prepared,
                      const Contents& contents) {
  if (const std::int64_t unwritten = count_poison(output); unwritten > 0) {
    throw Failure{Verdict::UnwrittenOutput,
                  concat(oracle.elements(static_cast<double>(unwritten), prepared.size),
                         " are never written at ", oracle.at_size(prepared.size))};
  }
  const Accuracy accuracy = oracle.compare(output, contents.reference, contents.exact);
  if (accuracy.violations > 0) {
    throw Failure{Verdict::WrongAnswer, oracle.complaint(accuracy, prepared.size)};
  }
  return accuracy;
}

} // namespace evo
