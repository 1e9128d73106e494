// Reading a problem.toml. Every refusal names the file, the key and what would be right.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "fitness/entry.hpp"
#include "fitness/problem.hpp"

namespace evo {
namespace {

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

/// Every name must be a dim of the problem.
void check_dims(const Table& table, std::string_view key, const Names& names,
                const Problem& problem) {
  for (const std::string& name : names) {
    if (std::ranges::find(problem.dim_order, name) == problem.dim_order.end()) {
      table.refuse(key, fmt::format("names the dim \"{}\", which dims.order does not have: {}",
                                    name, fmt::join(problem.dim_order, ", ")));
    }
  }
}

void read_dims(const Table& dims, Problem& problem) {
  problem.vary = dims.identifier("vary");
  problem.dim_order = dims.texts("order");
  if (problem.dim_order.size() > max_dims) {
    dims.refuse("order", fmt::format("has more than {} dims", max_dims));
  }
  check_dims(dims, "vary", {problem.vary}, problem);
  for (const std::string& key : dims.keys()) {
    if (key != "vary" && key != "order") {
      check_dims(dims, key, {key}, problem);
      problem.fixed_dims[key] = dims.positive(key);
    }
  }
  if (problem.fixed_dims.contains(problem.vary)) {
    dims.refuse(problem.vary, "is the dim that varies; its values belong in sizes.measure");
  }
  for (const std::string& name : problem.dim_order) {
    if (name != problem.vary && !problem.fixed_dims.contains(name)) {
      dims.refuse(
          name, fmt::format("is missing: dims.order names it, so give it a value ({} = 16)", name));
    }
  }
}

void read_shape(const Table& table, TensorSpec& tensor, const Problem& problem) {
  tensor.name = table.identifier("name");
  tensor.shape = table.texts("shape");
  check_dims(table, "shape", tensor.shape, problem);
}

TensorSpec read_input(const Table& table, const Problem& problem) {
  TensorSpec tensor;
  read_shape(table, tensor, problem);
  const std::string name = table.text("distribution");
  const auto distribution = distribution_from(name);
  if (!distribution) {
    Names known;
    for (const Distribution each : all_distributions) {
      known.emplace_back(to_string(each));
    }
    table.refuse("distribution",
                 fmt::format("is \"{}\"; allowed: {}", name, fmt::join(known, ", ")));
  }
  tensor.distribution = *distribution;
  if (table.has("scale")) {
    tensor.scale = table.number("scale");
  }
  if (table.has("fan_in")) {
    tensor.fan_in = table.text("fan_in");
    check_dims(table, "fan_in", {tensor.fan_in}, problem);
  }
  return tensor;
}

void read_tensors(const Table& root, Problem& problem) {
  std::set<std::string> names;
  for (const Table& table :
       root.tables("inputs", {"name", "shape", "distribution", "scale", "fan_in"})) {
    problem.inputs.push_back(read_input(table, problem));
    if (!names.insert(problem.inputs.back().name).second) {
      table.refuse("name", fmt::format("is \"{}\" for a second time", problem.inputs.back().name));
    }
  }
  if (problem.inputs.size() > max_inputs) {
    root.refuse("inputs", fmt::format("has more than {} tensors", max_inputs));
  }
  const Table output = root.table("output", {"name", "shape"});
  read_shape(output, problem.output, problem);
  if (names.contains(problem.output.name)) {
    output.refuse("name", fmt::format("is \"{}\", which is an input", problem.output.name));
  }
}

void read_tolerance(const Table& tolerance, Problem& problem) {
  problem.rtol = tolerance.number("rtol");
  problem.atol = tolerance.number("atol");
  for (const std::string_view key : {"rtol", "atol"}) {
    if (tolerance.number(key) < 0) {
      tolerance.refuse(key, "must not be negative");
    }
  }
}

void read_cost(const Table& cost, Problem& problem) {
  for (const toml::node& node : cost.array("flops")) {
    const toml::array* product = node.as_array();
    const auto coefficient =
        product && !product->empty() ? product->front().value<double>() : std::nullopt;
    if (!coefficient) {
      cost.refuse("flops", "must be a list of products like [2, \"d\", \"d\"]");
    }
    Monomial monomial{.coefficient = *coefficient, .dims = {}};
    for (auto factor = product->begin() + 1; factor != product->end(); ++factor) {
      monomial.dims.push_back(factor->value_or(std::string()));
    }
    check_dims(cost, "flops", monomial.dims, problem);
    problem.flops.push_back(std::move(monomial));
  }
}

void read_files(const Table& root, const std::filesystem::path& folder, Problem& problem) {
  problem.folder = std::filesystem::absolute(folder).lexically_normal();
  problem.output_file = root.text("output_file");
  if (std::filesystem::path(problem.output_file).filename() != problem.output_file) {
    root.refuse("output_file", fmt::format("is \"{}\"; it must be a file name without folders",
                                           problem.output_file));
  }
  for (const std::string& seed : root.texts("seeds")) {
    const auto path = problem.folder / seed;
    if (!std::filesystem::is_regular_file(path)) {
      root.refuse("seeds", fmt::format("names {}, which is not a file in {}", seed,
                                       problem.folder.string()));
    }
    problem.seeds.push_back(path);
  }
}

toml::table parse(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file)) {
    throw InputError(fmt::format("{}: no such problem file", file.string()));
  }
  try {
    return toml::parse_file(file.string());
  } catch (const toml::parse_error& error) {
    throw InputError(fmt::format("{}:{}: not valid TOML: {}", file.string(),
                                 error.source().begin.line, error.description()));
  }
}

} // namespace

Problem Problem::load(const std::filesystem::path& file) {
  const toml::table parsed = parse(file);
  const Table root(parsed, file.string(), "",
                   {"name", "entry", "output_file", "seeds", "dims", "sizes", "inputs", "output",
                    "tolerance", "cost", "reference"});
  Problem problem;
  problem.name = root.text("name");
  problem.entry = root.identifier("entry");
  read_files(root, std::filesystem::absolute(file).parent_path(), problem);
  read_dims(root.table("dims", {}), problem);
  problem.sizes = root.table("sizes", {"measure"}).positives("measure");
  read_tensors(root, problem);
  read_tolerance(root.table("tolerance", {"rtol", "atol"}), problem);
  read_cost(root.table("cost", {"flops"}), problem);
  const Table reference = root.table("reference", {"torchscript"});
  problem.reference = reference.text("torchscript");
  if (problem.reference.find("def reference(") == std::string::npos) {
    reference.refuse("torchscript", "must define a function: def reference(...)");
  }
  return problem;
}

} // namespace evo
