#include "fitness/cpu/wraps.hpp"

#include <algorithm>
#include <tuple>

namespace evo::cpu {

void Wraps::wrap(Span span, Layer layer, std::string open, std::string close) {
  wraps_.try_emplace({span.begin, span.end, layer}, Text{std::move(open), std::move(close)});
}

void Wraps::replace(Span span, std::string text) {
  replacements_.try_emplace(span.begin, Edit{span.begin, span.length(), std::move(text)});
}

std::vector<Edit> Wraps::edits() const {
  // At one offset: what ends there, the inner first; what begins there, the outer first; what is
  // replaced.
  using Place = std::tuple<unsigned, int, long, int>;
  std::vector<std::pair<Place, Edit>> placed;
  for (const auto& [key, text] : wraps_) {
    const int layer = static_cast<int>(key.layer);
    placed.push_back({{key.end, 0, -long{key.begin}, -layer}, {key.end, 0, text.close}});
    placed.push_back({{key.begin, 1, -long{key.end}, layer}, {key.begin, 0, text.open}});
  }
  for (const auto& [offset, edit] : replacements_) {
    placed.push_back({{offset, 2, 0, 0}, edit});
  }
  std::ranges::stable_sort(placed, {}, &std::pair<Place, Edit>::first);
  std::vector<Edit> edits;
  for (auto& [place, edit] : placed) {
    edits.push_back(std::move(edit));
  }
  return edits;
}

} // namespace evo::cpu
