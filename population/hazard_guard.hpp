// No candidate costs a worker twice.
#pragma once

#include <memory>
#include <string>

#include "fitness/hazards.hpp"
#include "population/guard.hpp"

namespace evo {

/// Writes down each candidate before another evaluator runs it, and gives the known verdict of one
/// that is a hazard instead of running it. What the user names, a seed say, is always run.
class HazardGuard : public Guard {
public:
  /// `machine`: card and driver, for a hazard of one is none of another. `build_line`: how kernels
  /// are compiled, for the record.
  HazardGuard(std::unique_ptr<FitnessEvaluator> evaluator, std::unique_ptr<Hazards> hazards,
              std::string machine, std::string build_line);

  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override;

private:
  std::unique_ptr<Hazards> hazards_;
  std::string machine_;
  std::string build_line_;
};

} // namespace evo
