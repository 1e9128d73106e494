#include "fitness/policy/ptx.hpp"

#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "fitness/policy/names.hpp"

namespace evo::policy {
namespace {

const std::set<std::string_view> refused_instructions{"brkpt", "call", "nanosleep", "pmevent",
                                                      "trap"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

/// The word at `begin`.
std::string_view word_at(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_word(text[end])) {
    ++end;
  }
  return text.substr(begin, end - begin);
}

std::string without_comments(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const bool line = text.starts_with("//");
    if (line || text.starts_with("/*")) {
      const std::size_t end = text.find(line ? "\n" : "*/", 2);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + (line ? 1 : 2));
      result += ' ';
    } else {
      result += text.front();
      text.remove_prefix(1);
    }
  }
  return result;
}

/// What stands between ; and braces, without leading space, labels and predicates.
std::vector<std::string_view> statements(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(";{}");
    std::string_view statement = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    for (bool stripped = true; stripped && !statement.empty();) {
      const std::string_view word = word_at(statement, statement.front() == '$' ? 1 : 0);
      const std::size_t after = static_cast<std::size_t>(word.end() - statement.begin());
      const std::string_view rest = statement.substr(after);
      stripped = true;
      if (is_space(statement.front())) {
        statement.remove_prefix(1);
      } else if (statement.front() == '@') {
        const std::size_t space = statement.find_first_of(" \t\n");
        statement.remove_prefix(space == std::string_view::npos ? statement.size() : space);
      } else if (rest.starts_with(':') && !rest.starts_with("::")) {
        statement = rest.substr(1);
      } else {
        stripped = false;
      }
    }
    if (!statement.empty()) {
      result.push_back(statement);
    }
  }
  return result;
}

/// Names behind a %, which are special registers unless a .reg declares them.
std::vector<std::string_view> named_registers(std::string_view text) {
  std::vector<std::string_view> result;
  for (std::size_t i = text.find('%'); i != std::string_view::npos; i = text.find('%', i + 1)) {
    const std::string_view name = word_at(text, i + 1);
    if (!name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0) {
      result.push_back(name);
    }
  }
  return result;
}

bool is_balanced(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth < 0) {
      return false;
    }
  }
  return depth == 0;
}

} // namespace

std::optional<Finding> ptx_violation(std::string_view assembly) {
  const std::string text = without_comments(assembly);
  if (!is_balanced(text)) {
    return Finding{"closes a brace in inline assembly that it does not open", "balance the braces"};
  }
  std::set<std::string_view> declared;
  for (const std::string_view statement : statements(text)) {
    const bool directive = statement.front() == '.';
    const std::string_view word = word_at(statement, directive ? 1 : 0);
    if (directive && word == "reg") {
      const auto names = named_registers(statement);
      declared.insert(names.begin(), names.end());
      continue;
    }
    if (directive || refused_instructions.contains(word)) {
      return Finding{"uses " + quoted(statement.substr(0, word.size() + (directive ? 1 : 0))) +
                         " in inline assembly",
                     "keep to instructions that compute, move data or wait for other threads"};
    }
  }
  for (const std::string_view name : named_registers(text)) {
    if (!declared.contains(name) && !is_coordinate_register(name)) {
      return Finding{"reads " + quoted("%" + std::string(name)) + " in inline assembly",
                     "a kernel may know its place in the grid, not how it is being run"};
    }
  }
  return std::nullopt;
}

} // namespace evo::policy
