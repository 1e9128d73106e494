// Several candidates and the reference timed against each other.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fitness/checked_run.hpp"
#include "fitness/nvml.hpp"
#include "fitness/protocol.hpp"
#include "fitness/timed_candidate.hpp"

namespace evo {

class Comparison {
public:
  /// `sizes` as the request has them.
  Comparison(const Oracle& oracle, const Timer& timer, const Nvml& nvml,
             std::vector<const Prepared*> sizes);
  ~Comparison();

  /// One request per object. A contender's fault is the response's verdict.
  CompareResponse run(const CompareRequest& request);

private:
  struct Rival;

  void load(const CompareRequest& request);
  TimedBlock block(std::size_t number);
  BlockTimes block_at(std::size_t size, std::size_t number);
  void enter(std::size_t size, std::size_t draw);
  void check_clocks();
  std::vector<std::vector<double>> cold(int calls);

  const Oracle& oracle_;
  const Timer& timer_;
  const Nvml& nvml_;
  std::vector<const Prepared*> sizes_;
  std::vector<std::unique_ptr<Rival>> rivals_;
  std::mt19937_64 random_{std::random_device{}()}; // of orders; no figure is a function of it
  std::string suspect_;                            // the contender whose code runs
};

} // namespace evo
