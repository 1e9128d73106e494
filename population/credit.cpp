#include "population/credit.hpp"

namespace evo {
namespace {

constexpr double remembered = 0.9;      // of what was earned a generation before
constexpr double imagined_children = 3; // that every mutator starts from
constexpr double imagined_gain = 0.05;  // of each of these
constexpr double least_weight = 0.01;

} // namespace

void Credit::add(const std::vector<Earning>& earnings) {
  for (auto& [mutator, account] : accounts_) {
    account.children *= remembered;
    account.gain *= remembered;
  }
  for (const Earning& earning : earnings) {
    Account& account = accounts_[earning.mutator];
    account.children += 1;
    account.gain += earning.gain;
  }
}

double Credit::weight(std::string_view mutator) const {
  const auto found = accounts_.find(mutator);
  const Account account = found == accounts_.end() ? Account{} : found->second;
  return least_weight + (account.gain + imagined_children * imagined_gain) /
                            (account.children + imagined_children);
}

} // namespace evo
