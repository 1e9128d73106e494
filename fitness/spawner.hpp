// The one place where processes are started.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace evo {

struct SpawnRequest {
  std::vector<std::string> command;               // found on PATH
  std::string directory;                          // empty: ours
  std::map<std::string, std::string> environment; // added to ours
  std::vector<int> descriptors; // descriptors[i] becomes the child's i; it has no others
};

/// Starts a process as the leader of its own session, with parent-death signal SIGKILL and default
/// signal handling. Returns once it has exec'd; throws std::system_error with exec's own error.
pid_t spawn(SpawnRequest request);

} // namespace evo
