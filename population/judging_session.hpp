// Files through the gates, one after the other, on one backend.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "population/backend.hpp"
#include "population/interruption.hpp"
#include "population/options.hpp"

namespace evo {

struct Judged {
  std::string id; // of the genome; empty when the file does not parse
  Fitness fitness;
  Built built; // when it was built
};

class JudgingSession {
public:
  /// InputError as load_problem.
  explicit JudgingSession(const Options& options);

  /// Takes a kernel, or an export's, through all gates, the last of which is every case at every
  /// size. InputError when it cannot be read.
  Judged judge(const std::filesystem::path& file);
  /// Likewise, but from the build straight to the cases.
  Judged verify(const std::filesystem::path& file);

  /// Opened when first needed: what does not parse needs none. InputError as open_backend.
  OpenBackend& backend();
  const Problem& problem() const { return problem_; }
  std::stop_token stop() const { return interruption_.token(); }

private:
  Judged take(const std::filesystem::path& file, bool timed);

  Options options_;
  Problem problem_;
  Interruption interruption_{std::nullopt};
  std::optional<OpenBackend> backend_;
};

} // namespace evo
