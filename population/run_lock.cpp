#include "population/run_lock.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include "fitness/problem.hpp"
#include "population/files.hpp"

namespace evo {
namespace {

std::filesystem::path lock_file(const std::filesystem::path& run_folder) {
  return run_folder / "lock";
}

} // namespace

RunLock::RunLock(const std::filesystem::path& run_folder) {
  const std::filesystem::path file = lock_file(run_folder);
  file_ = UniqueFd(open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  if (file_.get() < 0) {
    throw InputError(fmt::format("cannot write {}: {}; a run is resumed where it can be written",
                                 file.string(), std::strerror(errno)));
  }
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw InputError(fmt::format("another evo is at the run {}, process {}; end that one first",
                                 run_folder.string(), read_text(file)));
  }
  write_text(file, std::to_string(getpid())); // the file stays the same, and locked
}

bool RunLock::held(const std::filesystem::path& run_folder) {
  const UniqueFd file(open(lock_file(run_folder).c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() >= 0 && flock(file.get(), LOCK_SH | LOCK_NB) != 0;
}

} // namespace evo
