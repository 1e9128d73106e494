// One table of a TOML file, read with refusals that name the file, the key and what would be right.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "fitness/problem.hpp"

namespace evo {

using Names = std::vector<std::string>;

/// One table of the file and how messages call it: "seeds/lora/problem.toml: inputs[0].".
class Table {
public:
  Table(const toml::table& table, std::string file, std::string prefix,
        std::initializer_list<std::string_view> allowed)
      : table_(table), file_(std::move(file)), prefix_(std::move(prefix)) {
    if (allowed.size() != 0) {
      check_keys(Names(allowed.begin(), allowed.end()));
    }
  }

  [[noreturn]] void refuse(std::string_view key, std::string_view complaint) const {
    throw InputError(fmt::format("{}: {}{} {}", file_, prefix_, key, complaint));
  }

  bool has(std::string_view key) const { return table_.contains(key); }

  Names keys() const {
    Names names;
    for (const auto& [key, value] : table_) {
      names.emplace_back(std::string_view(key)); // toml++ 2 and 3 differ in the type of key
    }
    return names;
  }

  std::string text(std::string_view key) const {
    const auto value = require(key).value<std::string>();
    if (!value || value->empty()) {
      refuse(key, "must be a text that is not empty");
    }
    return *value;
  }

  /// A name that C and TorchScript accept.
  std::string identifier(std::string_view key) const {
    const std::string value = text(key);
    const auto is_word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
    if (!std::ranges::all_of(value, is_word) ||
        std::isdigit(static_cast<unsigned char>(value[0]))) {
      refuse(key, fmt::format("is \"{}\"; it must be an identifier: letters, digits and _", value));
    }
    return value;
  }

  double number(std::string_view key) const {
    const auto value = require(key).value<double>();
    if (!value || !std::isfinite(*value)) {
      refuse(key, "must be a number");
    }
    return *value;
  }

  int positive(std::string_view key) const { return positive(key, require(key)); }

  Names texts(std::string_view key) const {
    Names names;
    for (const toml::node& element : array(key)) {
      const auto value = element.value<std::string>();
      if (!value) {
        refuse(key, "must be a list of texts");
      }
      names.push_back(*value);
    }
    return names;
  }

  std::vector<int> positives(std::string_view key) const {
    std::vector<int> values;
    for (const toml::node& element : array(key)) {
      values.push_back(positive(key, element));
    }
    return values;
  }

  const toml::array& array(std::string_view key) const {
    const toml::array* value = require(key).as_array();
    if (!value || value->empty()) {
      refuse(key, "must be a list that is not empty");
    }
    return *value;
  }

  Table table(std::string_view key, std::initializer_list<std::string_view> allowed) const {
    const toml::table* value = require(key).as_table();
    if (!value) {
      refuse(key, fmt::format("must be a table, [{}]", key));
    }
    return {*value, file_, fmt::format("{}{}.", prefix_, key), allowed};
  }

  std::vector<Table> tables(std::string_view key,
                            std::initializer_list<std::string_view> allowed) const {
    std::vector<Table> all;
    for (const toml::node& element : array(key)) {
      if (!element.is_table()) {
        refuse(key, fmt::format("must be a list of tables, [[{}]]", key));
      }
      all.emplace_back(*element.as_table(), file_,
                       fmt::format("{}{}[{}].", prefix_, key, all.size()), allowed);
    }
    return all;
  }

private:
  void check_keys(const Names& allowed) const {
    for (const std::string& key : keys()) {
      if (std::ranges::find(allowed, key) == allowed.end()) {
        refuse(key, fmt::format("is unknown; allowed: {}", fmt::join(allowed, ", ")));
      }
    }
  }

  const toml::node& require(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (!node) {
      refuse(key, "is missing");
    }
    return *node;
  }

  int positive(std::string_view key, const toml::node& node) const {
    const auto value = node.value_exact<int64_t>();
    if (!value || *value < 1 || *value > 1 << 24) {
      refuse(key, "must be a whole number from 1 to 16777216");
    }
    return static_cast<int>(*value);
  }

  const toml::table& table_;
  std::string file_;
  std::string prefix_;
};

} // namespace evo
