// Reading a problem.toml. Every refusal names the file, the key and what would be right.
#include <algorithm>
#include <set>

#include "fitness/entry.hpp"
#include "fitness/problem_cases.hpp"

namespace evo {
namespace {

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
  table.text("distribution"); // must be there
  read_contents(table, problem, tensor);
  return tensor;
}

void read_tensors(const Table& root, Problem& problem) {
  std::set<std::string> names;
  for (const Table& table :
       root.tables("inputs", {"name", "shape", "distribution", "scale", "fan_in", "modifiers"})) {
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
                    "tolerance", "cases", "cost", "reference"});
  Problem problem;
  problem.name = root.text("name");
  problem.entry = root.identifier("entry");
  read_files(root, std::filesystem::absolute(file).parent_path(), problem);
  read_dims(root.table("dims", {}), problem);
  problem.sizes = root.table("sizes", {"measure"}).positives("measure");
  read_tensors(root, problem);
  read_tolerance(root.table("tolerance", {"rtol", "atol"}), problem);
  read_cases(root, problem);
  read_cost(root.table("cost", {"flops"}), problem);
  const Table reference = root.table("reference", {"torchscript"});
  problem.reference = reference.text("torchscript");
  if (problem.reference.find("def reference(") == std::string::npos) {
    reference.refuse("torchscript", "must define a function: def reference(...)");
  }
  return problem;
}

} // namespace evo
