// Enumerators by the names that files and messages give them.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace evo {

/// The one of `all` whose to_string() is `text`.
template <typename Enum, std::size_t Count>
std::optional<Enum> find_named(const std::array<Enum, Count>& all, std::string_view text) {
  const auto found = std::ranges::find(all, text, [](Enum value) { return to_string(value); });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

} // namespace evo
