// Candidates run on the card, in the worker.
#pragma once

#include <memory>
#include <vector>

#include "fitness/floor.hpp"
#include "fitness/worker_client.hpp"
#include "population/evaluator.hpp"

namespace evo {

/// The gates before any compiler: a source that does not parse gets no further, nor one that the
/// policy refuses.
std::variant<Kernel, BuildFailure> parse_gate(const Genome& genome, const Target& target,
                                              Gates gates = Gates::All);

/// Screens with a few calls, and gives up on what is far from the incumbent. What looks faster than
/// the incumbent is verified, and timed against it, interleaved, until a sequential test decides.
/// Nobody is faster than the card can be.
class CudaEvaluator : public FitnessEvaluator {
public:
  CudaEvaluator(Builder builder, std::unique_ptr<WorkerClient> worker, Target target,
                std::vector<int> sizes, Floor floor, VerifySettings verify);

  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token stop,
                                          Gates gates) const override;
  std::chrono::milliseconds deadline(const Incumbent* incumbent) const override;
  Judgement judge(const Genome& genome, const Built& built, const Incumbent* incumbent,
                  std::stop_token stop) override;
  VerifyResponse verify(const Genome& genome, const Built& built, bool full,
                        std::stop_token stop) override;

private:
  Fitness screen(const std::string& id, const Built& built, const Incumbent* incumbent,
                 std::stop_token stop);
  Fitness within_floor(Fitness fitness, const Built& built) const;
  void challenge(Judgement& judgement, const std::string& id, const Built& built,
                 const Incumbent& incumbent, std::stop_token stop);

  Builder builder_;
  std::unique_ptr<WorkerClient> worker_;
  Target target_;
  std::vector<int> sizes_;
  Floor floor_;
  VerifySettings verify_;
};

} // namespace evo
