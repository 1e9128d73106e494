// Who breeds and who stays.
#pragma once

#include <vector>

#include "population/individual.hpp"
#include "population/random.hpp"

namespace evo {

/// The fittest of `size` draws with replacement; `members` is not empty.
const Individual& tournament(const std::vector<Individual>& members, std::size_t size,
                             Random& random);

/// The `count` fittest viable of members and children, fittest first, no id twice: the elite
/// survives until something better comes.
std::vector<Individual> survivors(const std::vector<Individual>& members,
                                  const std::vector<Individual>& children, std::size_t count);

} // namespace evo
