// Where a run begins that is not the first on its card.
#pragma once

#include <vector>

#include "population/search.hpp"
#include "population/store.hpp"

namespace evo {

/// The fittest that the store knows of this subject, and the fittest of every niche.
std::vector<Founder> founders(const Store& store);

} // namespace evo
