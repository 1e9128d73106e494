#include "fitness/traces.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fitness/concat.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;

// A thread that has been joined stays listed for a moment.
constexpr std::chrono::milliseconds time_to_end{100};

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line);
  return line;
}

/// Without those that the CUDA driver starts when it likes.
std::set<std::string> own_threads() {
  std::set<std::string> threads;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    if (!first_line(task.path() / "comm").starts_with("cuda")) {
      threads.insert(task.path().filename());
    }
  }
  return threads;
}

/// Whether a driver would not open it when it likes, as it does devices and pipes.
bool is_file_or_socket(const std::string& name) {
  constexpr std::array drivers{"/dev/", "/proc/", "/sys/", "/memfd:"};
  return name.starts_with("socket:") ||
         (name.starts_with("/") && std::ranges::none_of(drivers, [&](const char* start) {
            return name.starts_with(start);
          }));
}

std::map<std::string, int> open_files() {
  std::map<std::string, int> files;
  for (const auto& descriptor : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone; // the descriptor of this very loop, afterwards
    const std::string name = fs::read_symlink(descriptor.path(), gone);
    if (!gone && is_file_or_socket(name)) {
      ++files[name];
    }
  }
  return files;
}

bool more_than(const std::set<std::string>& now, const std::set<std::string>& before) {
  return !std::includes(before.begin(), before.end(), now.begin(), now.end());
}

/// Ended ones that nobody has waited for included, and reaped.
bool has_children() {
  return waitpid(-1, nullptr, WNOHANG | __WALL) >= 0;
}

bool is_our_child(const fs::path& process) {
  // "PID (NAME) STATE PARENT ..."; the name may hold anything.
  const std::string line = first_line(process / "stat");
  const auto name_end = line.rfind(')');
  return name_end != std::string::npos && name_end + 4 < line.size() &&
         std::strtol(line.c_str() + name_end + 4, nullptr, 10) == getpid();
}

/// Their children become ours, so this takes as many rounds as there are generations.
void end_children() {
  while (has_children()) {
    for (const auto& process : fs::directory_iterator("/proc")) {
      const long pid = std::strtol(process.path().filename().c_str(), nullptr, 10);
      if (pid > 0 && is_our_child(process.path())) {
        kill(static_cast<pid_t>(pid), SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

} // namespace

void adopt_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Traces::Traces() : threads_(own_threads()), open_files_(open_files()) {}

std::optional<CandidateFailure> Traces::left() const {
  if (has_children()) {
    end_children();
    return CandidateFailure{Verdict::Suspicious, "it leaves a process behind"};
  }
  const auto deadline = std::chrono::steady_clock::now() + time_to_end;
  while (more_than(own_threads(), threads_)) {
    if (std::chrono::steady_clock::now() > deadline) {
      return CandidateFailure{Verdict::Suspicious, "it leaves a thread running"};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const auto& [file, count] : open_files()) {
    const auto before = open_files_.find(file);
    if (before == open_files_.end() || before->second < count) {
      return CandidateFailure{Verdict::Suspicious, concat("it leaves ", file, " open")};
    }
  }
  return std::nullopt;
}

} // namespace evo
