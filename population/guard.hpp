// An evaluator around another one.
#pragma once

#include <memory>
#include <utility>

#include "population/evaluator.hpp"

namespace evo {

/// Does as the inner one does; what derives from it has a say in the judgement.
class Guard : public FitnessEvaluator {
public:
  explicit Guard(std::unique_ptr<FitnessEvaluator> inner) : inner_(std::move(inner)) {}

  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token stop,
                                          Gates gates) const override {
    return inner_->build(genome, std::move(stop), gates);
  }
  std::chrono::milliseconds deadline(const Incumbent* incumbent) const override {
    return inner_->deadline(incumbent);
  }
  VerifyResponse verify(const Genome& genome, const Built& built, bool full,
                        std::stop_token stop) override {
    return inner_->verify(genome, built, full, std::move(stop));
  }

protected:
  FitnessEvaluator& inner() { return *inner_; }

private:
  std::unique_ptr<FitnessEvaluator> inner_;
};

} // namespace evo
