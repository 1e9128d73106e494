#include "fitness/problem_cases.hpp"

#include <set>

namespace evo {
namespace {

constexpr const char* harness = "harness";

/// One of the values that a text can name.
template <typename Value, std::size_t Count>
Value named(const Table& table, std::string_view key, const std::string& text,
            std::optional<Value> value, const std::array<Value, Count>& all) {
  if (!value) {
    Names known;
    for (const Value each : all) {
      known.emplace_back(to_string(each));
    }
    table.refuse(key, fmt::format("is \"{}\"; allowed: {}", text, fmt::join(known, ", ")));
  }
  return *value;
}

double positive_number(const Table& table, std::string_view key) {
  const double value = table.number(key);
  if (value <= 0) {
    table.refuse(key, "must be more than 0");
  }
  return value;
}

std::string input_names(const Problem& problem) {
  Names names;
  for (const TensorSpec& input : problem.inputs) {
    names.push_back(input.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void read_overrides(const Table& inputs, const Problem& problem, Case& read) {
  for (const std::string& name : inputs.keys()) {
    const auto input = std::ranges::find(read.inputs, name, &TensorSpec::name);
    if (input == read.inputs.end()) {
      inputs.refuse(name, fmt::format("is no input; choose from {}", input_names(problem)));
    }
    read_contents(inputs.table(name, {"distribution", "scale", "fan_in", "modifiers"}), problem,
                  *input);
  }
}

Case read_case(const Table& table, const Problem& problem) {
  const std::string level = table.text("level");
  Case read{.name = table.text("name"),
            .level = named(table, "level", level, level_from(level), all_levels),
            .sweep = table.has("sweep") ? positive_number(table, "sweep") : 0,
            .inputs = problem.inputs};
  if (table.has("inputs")) {
    read_overrides(table.table("inputs", {}), problem, read);
  }
  if (table.has("times")) {
    const double factor = positive_number(table, "times");
    for (TensorSpec& input : read.inputs) {
      input.scale *= factor;
    }
  }
  return read;
}

} // namespace

void check_dims(const Table& table, std::string_view key, const Names& names,
                const Problem& problem) {
  for (const std::string& name : names) {
    if (std::ranges::find(problem.dim_order, name) == problem.dim_order.end()) {
      table.refuse(key, fmt::format("names the dim \"{}\", which dims.order does not have: {}",
                                    name, fmt::join(problem.dim_order, ", ")));
    }
  }
}

void read_contents(const Table& table, const Problem& problem, TensorSpec& tensor) {
  if (table.has("distribution")) {
    const std::string name = table.text("distribution");
    tensor.distribution =
        named(table, "distribution", name, distribution_from(name), all_distributions);
    tensor.scale = 1;
    tensor.fan_in.clear();
    tensor.modifiers.clear();
  }
  if (table.has("scale")) {
    tensor.scale = table.number("scale");
  }
  if (table.has("fan_in")) {
    tensor.fan_in = table.text("fan_in");
    check_dims(table, "fan_in", {tensor.fan_in}, problem);
  }
  if (table.has("modifiers")) {
    tensor.modifiers.clear();
    for (const std::string& name : table.texts("modifiers")) {
      tensor.modifiers.push_back(
          named(table, "modifiers", name, modifier_from(name), all_modifiers));
    }
  }
}

void read_cases(const Table& root, Problem& problem) {
  problem.cases = {{.name = harness, .level = Level::Harness, .inputs = problem.inputs}};
  if (!root.has("cases")) {
    return;
  }
  std::set<std::string> names{harness};
  for (const Table& table : root.tables("cases", {"name", "level", "sweep", "times", "inputs"})) {
    problem.cases.push_back(read_case(table, problem));
    const std::string& name = problem.cases.back().name;
    if (!names.insert(name).second) {
      table.refuse("name", name == harness
                               ? "is \"harness\", which stands for the inputs as they are timed"
                               : fmt::format("is \"{}\" for a second time", name));
    }
  }
}

} // namespace evo
