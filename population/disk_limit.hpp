// How much of the disk runs leave behind.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace evo {

struct DiskLimit {
  std::filesystem::path population; // with runs/, the build cache below it
  std::filesystem::path store;
  std::filesystem::path current; // the run that stays
  std::uintmax_t bytes = 0;      // what all of it may take
};

/// Makes room: runs go first, the oldest before others and none that is under way, then builds that
/// nobody has used for an hour. Returns a sentence where that was not enough, else nothing.
std::string make_room(const DiskLimit& limit);

} // namespace evo
