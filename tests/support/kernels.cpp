#include "tests/support/kernels.hpp"

#include <fstream>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <variant>

#include "mutators/rewrite.hpp"

namespace evo::test {
std::filesystem::path in_repository(const std::filesystem::path& path) {
  return std::filesystem::path(EVO_SOURCE_DIR) / path;
}

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) {
    throw std::runtime_error("cannot read " + file.string());
  }
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

const Target& default_target() {
  static const Target target = *Target::find("sm_86");
  return target;
}

Kernel parse(std::string source, const Target& target) {
  auto result = Kernel::parse(std::move(source), target);
  if (const auto* error = std::get_if<ParseError>(&result)) {
    throw std::runtime_error("does not parse: " + error->message);
  }
  return std::get<Kernel>(std::move(result));
}

bool parses(const std::string& source) {
  return std::holds_alternative<Kernel>(Kernel::parse(source, default_target()));
}

Proposals::Proposals(const Mutator& mutator, std::string source)
    : mutator_(mutator.about().name), source_(std::move(source)),
      rewrites_(mutator.propose(parse(source_))) {}

std::vector<std::string> Proposals::labels() const {
  std::vector<std::string> result;
  for (const Rewrite& rewrite : rewrites_) {
    result.push_back(rewrite.label);
  }
  return result;
}

std::string Proposals::apply(const std::string& label) const {
  std::string proposed;
  for (const Rewrite& rewrite : rewrites_) {
    if (rewrite.label == label) {
      return canonical(apply_edits(source_, rewrite.edits));
    }
    proposed += "\n  " + rewrite.label;
  }
  throw std::runtime_error(mutator_ + " does not propose '" + label +
                           "'; it proposes:" + (proposed.empty() ? " nothing" : proposed));
}

std::vector<std::string> labels(const Mutator& mutator, const std::string& source) {
  return Proposals(mutator, source).labels();
}

std::string apply(const Mutator& mutator, const std::string& source, const std::string& label) {
  return Proposals(mutator, source).apply(label);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) {
    throw std::runtime_error("no '" + what + "' to replace");
  }
  return text.replace(at, what.size(), by);
}

std::ostream& operator<<(std::ostream& stream, const Change& change) {
  return stream << change.name;
}

std::string changed(std::string source, const Change& change) {
  for (const auto& [from, to] : change.replacements) {
    source = replaced(std::move(source), from, to);
  }
  return source;
}

std::string followed(std::string source, const Trail& trail) {
  for (const auto& [mutator, label] : trail) {
    source = apply(*mutator, source, label);
  }
  return source;
}

std::ostream& operator<<(std::ostream& stream, const Order& order) {
  return stream << order.name;
}

} // namespace evo::test
