// Candidates run lowered to the CPU, and the analytic model of a card tells their time.
#pragma once

#include <memory>

#include "fitness/cost_model.hpp"
#include "fitness/cpu/lower.hpp"
#include "fitness/worker_client.hpp"
#include "population/evaluator.hpp"

namespace evo {

/// nvcc builds too, though nothing of it runs: its registers and shared memory are the model's
/// input, and its verdict is final.
class ModelEvaluator : public FitnessEvaluator {
public:
  ModelEvaluator(Builder builder, cpu::HostBuilder host_builder,
                 std::unique_ptr<WorkerClient> worker, Problem problem, Card card, Level level);

  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token stop,
                                          Gates gates) const override;
  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override;
  VerifyResponse verify(const Genome& genome, const Built& built, bool full,
                        std::stop_token stop) override;

private:
  std::vector<SizeResult> estimate(const Built& built, const JudgeResponse& response) const;

  Builder builder_;
  cpu::HostBuilder host_builder_;
  std::unique_ptr<WorkerClient> worker_;
  Problem problem_;
  Card card_;
  Level level_;
};

} // namespace evo
