#include "mutators/analysis/meaning.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <set>
#include <string>
#include <utility>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>

#include "mutators/analysis/interpreter.hpp"
#include "mutators/analysis/launches.hpp"

namespace evo {

/// By the dims, of buffers without ends.
struct KnownMeanings {
  std::map<std::vector<std::int64_t>, std::variant<Meaning, Failure>> by_dims;
};

namespace {

constexpr std::int64_t step_limit = 50'000'000; // of one block
constexpr std::int64_t slow = 144;              // a size of a matrix

enum class BufferRole { Input, Output, Workspace };

/// The pointers of an entry, by index.
std::map<int, BufferRole> roles(const clang::FunctionDecl& entry) {
  std::map<int, BufferRole> result;
  for (const clang::ParmVarDecl* parameter : entry.parameters()) {
    const clang::QualType pointee = parameter->getType()->getPointeeType();
    if (!pointee.isNull() && !pointee->isRecordType()) {
      result[static_cast<int>(parameter->getFunctionScopeIndex())] =
          pointee.isConstQualified() ? BufferRole::Input
          : pointee->isVoidType()    ? BufferRole::Workspace
                                     : BufferRole::Output;
    }
  }
  return result;
}

std::set<int> of_role(const std::map<int, BufferRole>& roles, BufferRole wanted) {
  std::set<int> result;
  for (const auto& [buffer, role] : roles) {
    if (role == wanted) {
      result.insert(buffer);
    }
  }
  return result;
}

std::int64_t workspace_bytes(const Kernel& kernel, const clang::FunctionDecl& function,
                             const std::vector<std::int64_t>& dims) {
  Interpreter interpreter(kernel, {}, step_limit);
  const std::vector<Argument> arguments(dims.begin(), dims.end());
  const Value bytes = interpreter.run_host(function, arguments, {}, {});
  const auto* known = std::get_if<Ints>(&bytes);
  return known != nullptr
             ? (*known)[0]
             : throw Failure{Failure::Kind::Unknown, "the size of the workspace is not known"};
}

void run_all_blocks(Interpreter& interpreter, const EvaluatedLaunch& launch) {
  for (int z = 0; z < launch.grid.z; ++z) {
    for (int y = 0; y < launch.grid.y; ++y) {
      for (int x = 0; x < launch.grid.x; ++x) {
        interpreter.run(launch.block_at({x, y, z}));
      }
    }
  }
}

std::vector<std::optional<std::int64_t>> elements(const RingMemory::Cells& cells,
                                                  const std::string& name) {
  using State = RingMemory::State;
  if (std::ranges::find(cells.states, State::Undefined) != cells.states.end()) {
    throw Failure{Failure::Kind::Fault,
                  name + " depends on memory that nothing wrote, or on a magnitude"};
  }
  std::vector<std::optional<std::int64_t>> result;
  const auto written = std::ranges::find(cells.states | std::views::reverse, State::Defined);
  const auto count = static_cast<std::size_t>(std::distance(written, cells.states.rend()));
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(cells.states[i] == State::Defined ? std::optional(cells.values[i])
                                                       : std::nullopt);
  }
  return result;
}

Meaning run(const Kernel& kernel, const clang::FunctionDecl& entry,
            const std::vector<std::int64_t>& dims, const std::vector<EvaluatedLaunch>& launches,
            BufferEnds bytes) {
  const std::map<int, BufferRole> buffers = roles(entry);
  const clang::FunctionDecl* workspace = workspace_function(kernel, entry);
  for (const int buffer : of_role(buffers, BufferRole::Workspace)) {
    if (workspace != nullptr) {
      bytes[buffer] = workspace_bytes(kernel, *workspace, dims);
    }
  }
  RingMemory memory(of_role(buffers, BufferRole::Input));
  Interpreter interpreter(kernel, {}, step_limit);
  interpreter.follow_floats(memory, std::move(bytes));
  for (const EvaluatedLaunch& launch : launches) {
    run_all_blocks(interpreter, launch);
  }
  const std::set<int> outputs = of_role(buffers, BufferRole::Output);
  Meaning result;
  for (std::size_t array = 0; array < interpreter.arrays().size(); ++array) {
    const Array& info = interpreter.arrays()[array];
    const auto* cells = memory.cells(static_cast<int>(array));
    if (cells == nullptr || info.buffer < 0) {
      continue;
    }
    if (info.elements < 0) {
      result.touched[info.buffer] = static_cast<std::int64_t>(cells->touched) * info.element_bytes;
    }
    if (outputs.contains(info.buffer)) {
      result.outputs[info.buffer] = elements(*cells, info.name);
    }
  }
  return result;
}

std::array<int, 3> sides(const Extent3& extent) {
  return {extent.x, extent.y, extent.z};
}

/// A launch's grid at two sizes, the second twice the first.
struct Growth {
  Extent3 small;
  Extent3 large;

  bool along(int side) const { return sides(large)[side] > sides(small)[side]; }
  int sides_that_grow() const { return along(0) + along(1) + along(2); }
};

/// Which launch covers a matrix with the largest tiles.
std::optional<std::size_t> largest_tiles(const std::vector<Growth>& growths) {
  const auto key = [&](std::size_t launch) {
    return std::pair(-growths[launch].sides_that_grow(), growths[launch].large.count());
  };
  std::optional<std::size_t> best;
  for (std::size_t launch = 0; launch < growths.size(); ++launch) {
    best = !best || key(launch) < key(*best) ? launch : *best;
  }
  return best;
}

/// The smallest size at which that launch has several blocks along each side that grows.
std::optional<std::int64_t> telling_size(const Kernel& kernel, const EntryDims& dims) {
  constexpr std::int64_t far = 2000; // several blocks of any tile
  const auto small = launches_at(kernel, dims, far);
  const auto large = launches_at(kernel, dims, 2 * far);
  std::vector<Growth> growths;
  for (std::size_t i = 0; i < std::min(small.size(), large.size()); ++i) {
    growths.push_back({small[i].grid, large[i].grid});
  }
  const auto launch = largest_tiles(growths);
  if (!launch) {
    return std::nullopt;
  }
  const auto is_large = [&](std::int64_t size) {
    const auto launches = launches_at(kernel, dims, size);
    return *launch < launches.size() && std::ranges::all_of(
                                            std::views::iota(0, 3),
                                            [&](int side) {
                                              return !growths[*launch].along(side) ||
                                                     sides(launches[*launch].grid)[side] > 1;
                                            });
  };
  const auto sizes = std::views::iota(std::int64_t{2}, far);
  return *std::ranges::partition_point(sizes, std::not_fn(is_large));
}

} // namespace

std::variant<Meaning, Failure> meaning(const Kernel& kernel, const std::vector<std::int64_t>& dims,
                                       const BufferEnds& ends) {
  auto launches = evaluate_launches(kernel, dims);
  if (auto* failure = std::get_if<Failure>(&launches)) {
    return std::move(*failure);
  }
  try {
    return run(kernel, *find_entry(kernel), dims, std::get<std::vector<EvaluatedLaunch>>(launches),
               ends);
  } catch (Failure& failure) {
    return std::move(failure);
  }
}

std::vector<std::vector<std::int64_t>> telling_dims(const Kernel& kernel) {
  const auto dims = find_dims(kernel);
  const auto size = dims ? telling_size(kernel, *dims) : std::nullopt;
  if (!size) {
    return {};
  }
  constexpr std::int64_t widest_access = 16; // elements
  if (*size >= slow) {
    return {dims->at(67), dims->at(80)};
  }
  return {dims->at(*size | 1), dims->at((*size / widest_access + 1) * widest_access)};
}

std::vector<std::vector<std::int64_t>> telling_dims_of_a_block(const Kernel& kernel) {
  const auto dims = find_dims(kernel);
  const auto size = dims ? telling_size(kernel, *dims) : std::nullopt;
  if (!size) {
    return {};
  }
  const std::int64_t whole = std::min(*size - 1, slow);
  return {dims->at((whole / 2 + 1) | 1), dims->at(whole)};
}

namespace {

const std::variant<Meaning, Failure>& known_meaning(const Kernel& kernel,
                                                    const std::vector<std::int64_t>& dims) {
  auto& known = kernel.known_meanings();
  if (known == nullptr) {
    known = std::make_shared<KnownMeanings>();
  }
  auto found = known->by_dims.find(dims);
  if (found == known->by_dims.end()) {
    found = known->by_dims.emplace(dims, meaning(kernel, dims)).first;
  }
  return found->second;
}

} // namespace

bool same_meaning(const Kernel& before, const Kernel& after,
                  const std::vector<std::vector<std::int64_t>>& dims) {
  return !dims.empty() && std::ranges::all_of(dims, [&](const std::vector<std::int64_t>& values) {
    const auto* first = std::get_if<Meaning>(&known_meaning(before, values));
    if (first == nullptr || first->outputs.empty()) {
      return false;
    }
    const auto b = meaning(after, values, first->touched);
    const auto* second = std::get_if<Meaning>(&b);
    return second != nullptr && *first == *second;
  });
}

bool same_meaning(const Kernel& before, const Kernel& after) {
  std::set<std::vector<std::int64_t>> all;
  for (const Kernel* kernel : {&before, &after}) {
    const auto dims = telling_dims(*kernel);
    all.insert(dims.begin(), dims.end());
  }
  return same_meaning(before, after, {all.begin(), all.end()});
}

} // namespace evo
