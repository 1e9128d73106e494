// What a kernel did wrong, thrown through it to the executor.
#pragma once

#include <string>

#include "fitness/verdict.hpp"

namespace evo::cpu {

struct Fault {
  Verdict verdict;
  std::string detail;
};

} // namespace evo::cpu
