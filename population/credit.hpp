// What mutators have earned lately: those that made children faster are asked more often.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "population/individual.hpp"

namespace evo {

class Credit {
public:
  /// Children of one generation, each with the logarithm of how much faster than its fittest parent
  /// it is. What earlier generations earned counts less from now on.
  struct Earning {
    std::string mutator;
    double gain = 0; // 0 for a child that is slower, or fails
  };
  void add(const std::vector<Earning>& earnings);

  /// How likely a mutator should be chosen, in proportion to others: its average gain, and as if it
  /// had had some before its first child, so that none is ever given up.
  double weight(std::string_view mutator) const;

private:
  struct Account {
    double children = 0;
    double gain = 0;
  };
  std::map<std::string, Account, std::less<>> accounts_;
};

} // namespace evo
