// No elite that compute-sanitizer objects to.
#pragma once

#include <memory>

#include "fitness/sanitizer.hpp"
#include "population/guard.hpp"

namespace evo {

/// What another evaluator finds better than the incumbent, after all its measurements, passes the
/// sanitizer too, or fails with its finding. A sanitizer that does not work is given up, once, with
/// a line on stderr.
class SanitizerGuard : public Guard {
public:
  SanitizerGuard(std::unique_ptr<FitnessEvaluator> evaluator, std::unique_ptr<Sanitizer> sanitizer);

  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override;

private:
  std::optional<SanitizerFinding> check(const Built& built, std::stop_token stop);

  std::unique_ptr<Sanitizer> sanitizer_; // nullptr once given up
};

} // namespace evo
