// Edits that nest: text before and after a piece of source, around pieces that are wrapped too.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "mutators/render.hpp"
#include "mutators/rewrite.hpp"

namespace evo::cpu {

/// Which of two wraps of the same piece is the outer one: the one named first.
enum class Layer { Assignment, Operation, Access, Element };

class Wraps {
public:
  /// Wrapping the same piece in the same layer again changes nothing: template instantiations and
  /// macro arguments meet the same source more than once.
  void wrap(Span span, Layer layer, std::string open, std::string close);
  /// Replaces a piece that no wrap begins or ends in.
  void replace(Span span, std::string text);

  /// In the order that apply_edits wants.
  std::vector<Edit> edits() const;

private:
  struct Key {
    unsigned begin = 0;
    unsigned end = 0;
    Layer layer = Layer::Assignment;
    auto operator<=>(const Key&) const = default;
  };
  struct Text {
    std::string open;
    std::string close;
  };
  std::map<Key, Text> wraps_;
  std::map<unsigned, Edit> replacements_;
};

} // namespace evo::cpu
