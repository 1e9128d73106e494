#include "mutators/edited.hpp"

#include <algorithm>

#include "mutators/analysis/footprint.hpp"
#include "mutators/analysis/meaning.hpp"
#include "mutators/analysis/path_dims.hpp"

#include <utility>
#include <variant>

namespace evo {

std::optional<Kernel> edited(const Kernel& kernel, const std::vector<Edit>& edits) {
  auto parsed = Kernel::parse(apply_edits(kernel.source(), edits), kernel.target());
  auto* after = std::get_if<Kernel>(&parsed);
  return after == nullptr ? std::nullopt : std::optional(std::move(*after));
}

bool computes_the_same(const Kernel& kernel, const std::vector<Edit>& edits) {
  const auto after = edited(kernel, edits);
  const auto dims = after ? dims_of_all_paths(*after) : std::vector<std::vector<std::int64_t>>{};
  return !dims.empty() &&
         std::ranges::none_of(dims, [&](const auto& at) { return has_races(*after, at); }) &&
         same_meaning(kernel, *after, dims);
}

} // namespace evo
