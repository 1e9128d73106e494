// Kernels that cheat, and what a right judge says of each: tests/adversarial.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fitness/verdict.hpp"

namespace evo {

/// Any of these is right.
using Verdicts = std::vector<Verdict>;

bool allows(const Verdicts& expected, Verdict verdict);
/// "crash | launch error"
std::string to_string(const Verdicts& verdicts);

/// Its file begins with a comment line for us, followed by lines for the reader:
///
///   // expect: refused by policy; behind it: suspicious; model: refused by policy
///
/// "behind it" and "model" may be left out. Nothing of these lines is in `source`.
struct Specimen {
  std::string name; // the file's, without .cu
  std::string source;
  Verdicts expected;      // on a card
  Verdicts behind_policy; // on a card, when the policy is not asked; empty: nothing else catches it
  Verdicts on_model;      // on the model backend; empty: does not run there
};

/// InputError that names the file and what is wrong with its first line.
Specimen parse_specimen(const std::string& name, std::string_view text);

/// The `.cu` files of a folder by name; of these only the named ones, unless `only` is empty.
/// InputError for a folder without any, a name that is none, and as parse_specimen.
std::vector<Specimen> load_zoo(const std::filesystem::path& folder,
                               const std::vector<std::string>& only);

} // namespace evo
