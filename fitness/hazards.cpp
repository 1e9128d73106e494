#include "fitness/hazards.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "fitness/artifact_cache.hpp"
#include "fitness/export.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* attempt_extension = ".running";

json to_json_of(const Attempt& attempt) {
  return {{"key", attempt.key},
          {"source", attempt.source},
          {"build", attempt.build_line},
          {"deadline_ms", attempt.deadline.count()}};
}

Attempt attempt_from(const json& object) {
  return {object.at("key"), object.at("source"), object.at("build"),
          milliseconds(object.at("deadline_ms").get<long>())};
}

std::optional<Hazard> hazard_from(const std::string& text) {
  try {
    const json object = json::parse(text);
    const auto verdict = verdict_from(object.at("verdict").get<std::string>());
    if (verdict == Verdict::Crash || verdict == Verdict::Hang) {
      return Hazard{*verdict, object.at("detail"),
                    milliseconds(object.at("deadline_ms").get<long>())};
    }
    return std::nullopt;
  } catch (const json::exception&) { // damaged
    return std::nullopt;
  }
}

[[noreturn]] void cannot_write(const fs::path& file) {
  throw std::system_error(errno, std::generic_category(), "cannot write " + file.string());
}

/// Replaces what is in the file, and waits until the disk has it.
void overwrite(const UniqueFd& fd, const std::string& text, const fs::path& file) {
  const auto length = static_cast<ssize_t>(text.size());
  if (ftruncate(fd.get(), 0) != 0 || pwrite(fd.get(), text.data(), text.size(), 0) != length ||
      fsync(fd.get()) != 0) {
    cannot_write(file);
  }
}

std::vector<fs::path> files_in(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension) {
      files.push_back(entry.path());
    }
  }
  return files;
}

} // namespace

Hazards::Hazards(fs::path folder, std::size_t limit) : folder_(std::move(folder)), limit_(limit) {
  fs::create_directories(folder_);
  read_all();
  take_over_leftovers();
  std::string name = (folder_ / fmt::format("XXXXXX{}", attempt_extension)).string();
  attempt_file_ = UniqueFd(mkostemps(
      name.data(), static_cast<int>(std::string_view(attempt_extension).size()), O_CLOEXEC));
  if (attempt_file_.get() < 0) {
    cannot_write(name);
  }
  file_ = name;
  flock(attempt_file_.get(), LOCK_EX);
}

Hazards::~Hazards() {
  std::error_code ignored;
  fs::remove(file_, ignored);
}

void Hazards::read_all() {
  for (const fs::path& file : files_in(folder_, ".json")) {
    if (const auto hazard = hazard_from(read_file(file))) {
      known_[file.stem()] = *hazard;
    } else {
      notes_.push_back(fmt::format("{} is damaged and not used", file.string()));
    }
  }
}

void Hazards::take_over_leftovers() {
  for (const fs::path& file : files_in(folder_, attempt_extension)) {
    const UniqueFd fd(open(file.c_str(), O_RDWR | O_CLOEXEC));
    if (fd.get() < 0 || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      continue; // its process lives
    }
    const std::string text = read_file(file);
    try {
      if (!text.empty()) { // something was under way
        const Attempt attempt = attempt_from(json::parse(text));
        remember(attempt,
                 {Verdict::Crash, "evo or the machine ended while it ran", attempt.deadline});
        notes_.push_back(fmt::format("{} was being judged when evo or the machine ended: it is not "
                                     "run again",
                                     (folder_ / (attempt.key + ".cu")).string()));
      }
    } catch (const json::exception&) { // written in part, so it had not begun
      notes_.push_back(fmt::format("{} is damaged and not used", file.string()));
    }
    fs::remove(file);
  }
}

std::optional<Hazard> Hazards::find(const std::string& key, milliseconds deadline) const {
  const auto found = known_.find(key);
  if (found == known_.end()) {
    return std::nullopt;
  }
  const Hazard& hazard = found->second;
  const bool too_hasty = hazard.verdict == Verdict::Hang && deadline > 2 * hazard.deadline;
  return too_hasty ? std::nullopt : std::optional(hazard);
}

void Hazards::begin(const Attempt& attempt) {
  overwrite(attempt_file_, to_json_of(attempt).dump(-1, ' ', true, json::error_handler_t::replace),
            file_);
  attempt_ = attempt;
}

void Hazards::end(const Fitness& fitness) {
  if (fitness.verdict == Verdict::Crash || fitness.verdict == Verdict::Hang) {
    remember(attempt_, {fitness.verdict, fitness.detail, attempt_.deadline});
  }
  forget();
}

void Hazards::forget() {
  overwrite(attempt_file_, "", file_);
}

void Hazards::remember(const Attempt& attempt, const Hazard& hazard) {
  const json object{{"verdict", to_string(hazard.verdict)},
                    {"detail", hazard.detail},
                    {"deadline_ms", hazard.deadline.count()},
                    {"build", attempt.build_line}};
  write_file(folder_ / (attempt.key + ".cu"), attempt.source);
  replace_file(folder_ / (attempt.key + ".json"),
               object.dump(2, ' ', true, json::error_handler_t::replace) + "\n");
  known_[attempt.key] = hazard;
  drop_oldest();
}

void Hazards::drop_oldest() {
  std::vector<fs::path> records = files_in(folder_, ".json");
  if (records.size() <= limit_) {
    return;
  }
  std::ranges::sort(records, {}, [](const fs::path& file) {
    std::error_code gone; // another process drops them too
    return fs::last_write_time(file, gone);
  });
  records.resize(records.size() - limit_);
  for (fs::path& record : records) {
    std::error_code gone;
    fs::remove(record, gone);
    fs::remove(record.replace_extension(".cu"), gone);
  }
}

} // namespace evo
