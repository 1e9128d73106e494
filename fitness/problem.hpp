// A problem.toml: everything the engine is told about an operator.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fitness/accuracy.hpp"

namespace evo {

/// Bad input: what() is one sentence that says what is wrong, where, and what to do. main() prints
/// it and exits with 2.
class InputError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

enum class Distribution { Normal, Uniform, Positive, Zeros, Ones };

inline constexpr std::array all_distributions{Distribution::Normal, Distribution::Uniform,
                                              Distribution::Positive, Distribution::Zeros,
                                              Distribution::Ones};

/// "normal", as problem.toml spells it.
std::string_view to_string(Distribution distribution);
std::optional<Distribution> distribution_from(std::string_view text);

/// What is done to a drawn tensor. Rows run along the first axis, columns along the last.
enum class Modifier {
  LargeRow,        // one row, drawn from the seed, is 1000 times larger
  LargeColumn,     // one column
  AlikeRows,       // each odd row is the row before it, but for a thousandth
  OppositeRows,    // each odd row is the negative of the row before it
  OppositeColumns, // each odd column is the negative of the column before it
};

inline constexpr std::array all_modifiers{Modifier::LargeRow, Modifier::LargeColumn,
                                          Modifier::AlikeRows, Modifier::OppositeRows,
                                          Modifier::OppositeColumns};

/// "large_row", as problem.toml spells it.
std::string_view to_string(Modifier modifier);
std::optional<Modifier> modifier_from(std::string_view text);

/// A row-major float32 tensor; `shape` names dims. The values are draws of the distribution
/// (N(0,1), U[-1,1), U[0,1)), times `scale`, over sqrt(fan_in) where that names a dim, modified in
/// order.
struct TensorSpec {
  std::string name;
  std::vector<std::string> shape;
  Distribution distribution = Distribution::Normal;
  double scale = 1;
  std::string fan_in;
  std::vector<Modifier> modifiers = {};
};

/// Contents that a candidate's results are checked on.
struct Case {
  std::string name;
  Level level = Level::Default;
  double sweep = 0; // the scale of the output, for a point of the scale sweep; 0: none
  std::vector<TensorSpec> inputs;
};

/// coefficient * product of dims.
struct Monomial {
  double coefficient = 0;
  std::vector<std::string> dims;
};

using Dims = std::map<std::string, int>;

struct Problem {
  std::string name;
  std::string entry;       // the kernel file's extern "C" function; its workspace: entry_workspace
  std::string output_file; // the export's name
  std::filesystem::path folder;
  std::vector<std::filesystem::path> seeds; // absolute
  std::string vary;                         // the dim that sizes set
  std::vector<std::string> dim_order;       // as the entry takes them
  Dims fixed_dims;
  std::vector<int> sizes; // measured on a GPU
  std::vector<TensorSpec> inputs;
  TensorSpec output;
  double rtol = 0;
  double atol = 0;
  std::vector<Monomial> flops;
  std::vector<Case> cases; // the first is "harness", the inputs as they are timed
  std::string reference;   // TorchScript source of `def reference(inputs...)`

  Dims dims(int size) const;
  double flops_at(int size) const;
  std::vector<CaseOutline> outlines() const; // of the cases

  /// Reads and checks the file; InputError names the file and the key.
  static Problem load(const std::filesystem::path& file);
};

/// The shape in numbers; the product is the element count.
std::vector<long> resolve(const TensorSpec& tensor, const Dims& dims);

} // namespace evo
