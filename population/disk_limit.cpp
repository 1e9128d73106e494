#include "population/disk_limit.hpp"

#include <algorithm>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include "population/run_lock.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::hours build_rest{1}; // since its last use
constexpr double gib = 1024.0 * 1024 * 1024;

struct Removable {
  fs::path path;
  fs::file_time_type time;
  std::uintmax_t bytes = 0;
};

/// Of a file, or of all in a folder. Other engines come and go there: what is gone is nothing.
std::uintmax_t bytes_of(const fs::path& path) {
  std::error_code gone;
  if (!fs::is_directory(path, gone)) {
    const std::uintmax_t bytes = fs::file_size(path, gone);
    return gone ? 0 : bytes;
  }
  std::uintmax_t bytes = 0;
  for (auto entry = fs::recursive_directory_iterator(path, gone);
       !gone && entry != fs::recursive_directory_iterator(); entry.increment(gone)) {
    std::error_code gone_too;
    const std::uintmax_t size = entry->is_regular_file(gone_too) ? entry->file_size(gone_too) : 0;
    bytes += gone_too ? 0 : size;
  }
  return bytes;
}

/// What `chooses` in a folder, the oldest first.
template <typename Predicate>
std::vector<Removable> oldest_first(const fs::path& folder, Predicate chooses) {
  std::vector<Removable> result;
  std::error_code gone;
  for (auto entry = fs::directory_iterator(folder, gone);
       !gone && entry != fs::directory_iterator(); entry.increment(gone)) {
    std::error_code gone_too;
    const fs::file_time_type time = fs::last_write_time(entry->path(), gone_too);
    if (!gone_too && chooses(*entry, time)) {
      result.push_back({entry->path(), time, bytes_of(entry->path())});
    }
  }
  std::ranges::sort(result, {}, [](const Removable& each) { return each.time; });
  return result;
}

/// Until there are no more than `limit` bytes, as far as that goes.
void remove(const std::vector<Removable>& candidates, std::uintmax_t& bytes, std::uintmax_t limit) {
  for (const Removable& candidate : candidates) {
    if (bytes <= limit) {
      return;
    }
    std::error_code gone;
    fs::remove_all(candidate.path, gone);
    bytes -= std::min(bytes, candidate.bytes);
  }
}

} // namespace

std::string make_room(const DiskLimit& limit) {
  const fs::path runs = limit.population / "runs";
  std::uintmax_t bytes = bytes_of(runs);
  for (const char* part : {"", "-wal", "-shm"}) {
    bytes += bytes_of(fs::path(limit.store) += part);
  }
  if (bytes <= limit.bytes) {
    return {};
  }
  remove(oldest_first(runs,
                      [&](const fs::directory_entry& entry, fs::file_time_type) {
                        return !entry.is_symlink() && fs::exists(entry.path() / "run.json") &&
                               entry.path().filename() != limit.current.filename() &&
                               !RunLock::held(entry.path());
                      }),
         bytes, limit.bytes);
  const auto used_lately = fs::file_time_type::clock::now() - build_rest;
  remove(oldest_first(runs / ".cache",
                      [&](const fs::directory_entry& entry, fs::file_time_type time) {
                        return entry.is_regular_file() && time < used_lately;
                      }),
         bytes, limit.bytes);
  if (bytes <= limit.bytes) {
    return {};
  }
  return fmt::format("{} and the store take {:.2f} GiB, more than --disk-limit allows, and what is "
                     "left is this run's, the store's or of the last hour",
                     runs.string(), static_cast<double>(bytes) / gib);
}

} // namespace evo
