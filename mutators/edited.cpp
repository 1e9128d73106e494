#include "mutators/edited.hpp"

#include <utility>
#include <variant>

namespace evo {

std::optional<Kernel> edited(const Kernel& kernel, const std::vector<Edit>& edits) {
  auto parsed = Kernel::parse(apply_edits(kernel.source(), edits), kernel.target());
  auto* after = std::get_if<Kernel>(&parsed);
  return after == nullptr ? std::nullopt : std::optional(std::move(*after));
}

} // namespace evo
