// Who breeds and who stays.
#pragma once

#include <compare>
#include <vector>

#include "fitness/precision.hpp"
#include "population/individual.hpp"
#include "population/random.hpp"

namespace evo {

/// What kernels may differ in and yet both be worth keeping: what they multiply in, and how many
/// blocks of them a multiprocessor holds.
struct Niche {
  PrecisionClass precision = PrecisionClass::Unknown;
  bool frail = false;
  int registers = 0; // per thread, of the kernel with the most: 0 up to 64, 1 up to 128, 2 beyond

  auto operator<=>(const Niche&) const = default;
};

Niche niche_of(const Individual& individual);

/// The fittest of `size` draws with replacement; `members` is not empty.
const Individual& tournament(const std::vector<Individual>& members, std::size_t size,
                             Random& random);

/// Half of the time the winner of a tournament among all members, else of one in a niche, each of
/// which is as likely: what is slower than others may lead further.
const Individual& choose_parent(const std::vector<Individual>& members, Random& random);

/// The `count` fittest viable of members and children, and beyond them the fittest of every niche,
/// the frail ones' too; fittest first, no id twice: the elite survives until something better
/// comes.
std::vector<Individual> survivors(const std::vector<Individual>& members,
                                  const std::vector<Individual>& children, std::size_t count);

} // namespace evo
