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

namespace evo {

/// Bad input: what() is one sentence that says what is wrong, where, and what to do. main() prints
/// it and exits with 2.
class InputError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

enum class Distribution { Normal, Uniform, Zeros, Ones };

inline constexpr std::array all_distributions{Distribution::Normal, Distribution::Uniform,
                                              Distribution::Zeros, Distribution::Ones};

/// "normal", as problem.toml spells it.
std::string_view to_string(Distribution distribution);
std::optional<Distribution> distribution_from(std::string_view text);

/// A row-major float32 tensor; `shape` names dims. The values are draws of the distribution
/// (N(0,1), U[-1,1)), times `scale`, over sqrt(fan_in) where that names a dim.
struct TensorSpec {
  std::string name;
  std::vector<std::string> shape;
  Distribution distribution = Distribution::Normal;
  double scale = 1;
  std::string fan_in;
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
  std::string reference; // TorchScript source of `def reference(inputs...)`

  Dims dims(int size) const;
  double flops_at(int size) const;

  /// Reads and checks the file; InputError names the file and the key.
  static Problem load(const std::filesystem::path& file);
};

/// The shape in numbers; the product is the element count.
std::vector<long> resolve(const TensorSpec& tensor, const Dims& dims);

} // namespace evo
