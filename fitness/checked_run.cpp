#include "fitness/checked_run.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "fitness/cuda_check.hpp"
#include "fitness/mix.hpp"

namespace evo {
namespace {

constexpr std::size_t largest_workspace = std::size_t{1} << 40; // more is an overflow

std::size_t bytes_of(const Oracle& oracle, const TensorSpec& tensor, int size) {
  return sizeof(float) *
         static_cast<std::size_t>(c10::multiply_integers(oracle.shape_of(tensor, size)));
}

GuardedBuffer guarded_workspace(const Oracle& oracle, const Candidate& candidate, int size) {
  const std::size_t bytes = candidate.workspace_bytes(oracle.entry_dims(size));
  const CandidateFailure too_large{
      Verdict::OverLimits,
      concat("a workspace of ", bytes, " bytes at ", oracle.at_size(size), " does not fit")};
  if (bytes > largest_workspace) {
    throw too_large;
  }
  try {
    return GuardedBuffer(bytes, oracle.device());
  } catch (const c10::Error&) { // out of memory
    throw too_large;
  }
}

/// A permutation of 0 .. count - 1.
std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t chance) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [chance](std::size_t i) { return mix(chance + i); });
  return order;
}

/// What the device counts after a call, read at once.
struct Findings {
  std::vector<at::Tensor> outside; // by buffer: inputs, output, workspace
  std::vector<at::Tensor> touched; // by input
  at::Tensor unwritten;
  at::Tensor different;

  std::vector<std::int64_t> read() const {
    std::vector<at::Tensor> all = outside;
    all.insert(all.end(), touched.begin(), touched.end());
    all.push_back(unwritten);
    all.push_back(different);
    for (at::Tensor& each : all) {
      each = each.to(at::kLong);
    }
    const at::Tensor values = at::stack(all).cpu();
    const auto* const first = values.data_ptr<std::int64_t>();
    return {first, first + values.numel()};
  }
};

at::Tensor differing_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.view(at::kInt).ne(b.view(at::kInt)).sum();
}

std::string name_of_buffer(const Problem& problem, std::size_t index) {
  const std::size_t inputs = problem.inputs.size();
  return index < inputs    ? "input " + problem.inputs[index].name
         : index == inputs ? "output"
                           : "workspace";
}

void require(std::int64_t count, Verdict verdict, const std::string& sentence) {
  if (count != 0) {
    throw CandidateFailure{verdict, sentence};
  }
}

} // namespace

void load(const std::vector<GuardedBuffer>& buffers, const Tensors& values) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].guard();
    buffers[i].as_floats(values[i].sizes().vec()).copy_(values[i]);
  }
}

std::vector<const float*> pointers_of(const std::vector<GuardedBuffer>& buffers) {
  std::vector<const float*> pointers;
  for (const GuardedBuffer& buffer : buffers) {
    pointers.push_back(static_cast<const float*>(buffer.data()));
  }
  return pointers;
}

bool Prepared::holds(const Contents& chosen) const {
  for (std::size_t i = 0; i < live.size(); ++i) {
    const at::Tensor now = live[i].as_floats(chosen.inputs[i].sizes().vec());
    if (!now.view(at::kInt).equal(chosen.inputs[i].view(at::kInt))) {
      return false;
    }
  }
  return true;
}

Arguments shuffled_arguments(const Oracle& oracle, const Candidate& candidate, int size,
                             std::uint64_t chance) {
  const Problem& problem = oracle.problem();
  const std::size_t inputs = problem.inputs.size();
  std::vector<std::optional<GuardedBuffer>> buffers(inputs + 2);
  for (const std::size_t index : shuffled(buffers.size(), chance)) {
    if (index > inputs) {
      buffers[index] = guarded_workspace(oracle, candidate, size);
    } else {
      const TensorSpec& tensor = index < inputs ? problem.inputs[index] : problem.output;
      buffers[index] = GuardedBuffer(bytes_of(oracle, tensor, size), oracle.device());
    }
  }
  Arguments arguments{.inputs = {}, .output = *buffers[inputs], .workspace = *buffers[inputs + 1]};
  for (std::size_t i = 0; i < inputs; ++i) {
    arguments.inputs.push_back(*buffers[i]);
  }
  return arguments;
}

Outcome checked_call(const Oracle& oracle, const Candidate& candidate, int size,
                     const Arguments& arguments, const Tensors& inputs, const at::Tensor& before) {
  load(arguments.inputs, inputs);
  candidate.launch(pointers_of(arguments.inputs), static_cast<float*>(arguments.output.data()),
                   oracle.entry_dims(size), arguments.workspace.data());
  const std::string place = oracle.at_size(size);
  check_cuda(cudaDeviceSynchronize(), concat("a run at ", place));

  Outcome outcome{arguments.output.as_floats(oracle.shape_of(oracle.problem().output, size))};
  Findings findings;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor now = arguments.inputs[i].as_floats(inputs[i].sizes().vec());
    findings.outside.push_back(arguments.inputs[i].damaged());
    findings.touched.push_back(differing_bits(now, inputs[i]));
  }
  findings.outside.push_back(arguments.output.damaged());
  findings.outside.push_back(arguments.workspace.damaged());
  findings.unwritten = count_poison(outcome.output);
  findings.different =
      before.defined() ? differing_bits(outcome.output, before) : at::ones_like(findings.unwritten);

  const std::vector<std::int64_t> found = findings.read();
  const std::size_t buffers = findings.outside.size();
  for (std::size_t i = 0; i < buffers; ++i) {
    require(found[i], Verdict::OutOfBounds,
            concat("it writes outside its ", name_of_buffer(oracle.problem(), i), " at ", place));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require(found[buffers + i], Verdict::TouchedInput,
            concat("it changes the input ", oracle.problem().inputs[i].name, " at ", place));
  }
  const std::int64_t unwritten = found[found.size() - 2];
  require(unwritten, Verdict::UnwrittenOutput,
          concat(oracle.elements(static_cast<double>(unwritten), size), " are never written at ",
                 place));
  outcome.as_before = found.back() == 0;
  return outcome;
}

Accuracy check(const Oracle& oracle, const Candidate& candidate, const Prepared& prepared,
               const Contents& contents) {
  const std::size_t bytes = bytes_of(oracle, oracle.problem().output, prepared.size);
  const Arguments arguments{.inputs = prepared.live,
                            .output = GuardedBuffer(bytes, oracle.device()),
                            .workspace = guarded_workspace(oracle, candidate, prepared.size)};
  const Outcome outcome =
      checked_call(oracle, candidate, prepared.size, arguments, contents.inputs);
  return check_output(oracle, outcome.output, prepared, contents);
}

void check_exactly(const Oracle& oracle, const Candidate& candidate, const Prepared& probe) {
  const Contents& contents = probe.contents[0];
  const Outcome outcome =
      checked_call(oracle, candidate, probe.size,
                   shuffled_arguments(oracle, candidate, probe.size, 0), contents.inputs);
  const auto wrong = outcome.output.ne(contents.reference).sum().item<std::int64_t>();
  require(wrong, Verdict::WrongAnswer,
          concat(oracle.elements(static_cast<double>(wrong), probe.size),
                 " are not exact with small integers at ", oracle.at_size(probe.size)));
}

Accuracy check_output(const Oracle& oracle, const at::Tensor& output, const Prepared& prepared,
                      const Contents& contents) {
  const auto unwritten = count_poison(output).item<std::int64_t>();
  require(unwritten, Verdict::UnwrittenOutput,
          concat(oracle.elements(static_cast<double>(unwritten), prepared.size),
                 " are never written at ", oracle.at_size(prepared.size)));
  const Accuracy accuracy = oracle.compare(output, contents.reference, contents.exact);
  if (accuracy.violations > 0) {
    throw CandidateFailure{Verdict::WrongAnswer, oracle.complaint(accuracy, prepared.size)};
  }
  return accuracy;
}

} // namespace evo
