#include "population/duel.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fitness/block_statistics.hpp"
#include "fitness/call_time.hpp"

namespace evo {
namespace {

constexpr int first_calls = 6; // of each contender at each size, to check it

} // namespace

Contender contender(const std::string& id, const Built& built) {
  return {.id = id, .library = built.library.string()};
}

std::chrono::milliseconds duel_deadline(const Fitness& incumbent, const Fitness& challenger) {
  std::vector<double> times_ms = medians(incumbent);
  std::ranges::copy(medians(challenger), std::back_inserter(times_ms));
  for (const SizeResult& size : challenger.sizes) {
    times_ms.push_back(size.reference_ms);
  }
  return answer_deadline(times_ms, 2 * SequentialTest::look_step + first_calls);
}

Duel duel(WorkerClient& worker, const Contender& incumbent, const Contender& challenger,
          const std::vector<int>& sizes, std::chrono::milliseconds deadline, std::stop_token stop) {
  CompareRequest request;
  request.contenders = {incumbent, challenger};
  request.sizes = sizes;
  request.blocks = SequentialTest::look_step;
  Duel result;
  SequentialTest test;
  while (result.decision == Decision::Undecided) {
    CompareResponse response = worker.compare(request, deadline, stop);
    if (response.verdict != Verdict::Ok) {
      result.verdict = response.verdict;
      result.detail = std::move(response.detail);
      result.culprit = std::move(response.culprit);
      return result;
    }
    for (TimedBlock& block : response.blocks) {
      test.add(log_ratio(block, 0, 1));
      result.blocks.push_back(std::move(block));
    }
    result.decision = test.decision();
  }
  result.estimate = test.estimate();
  return result;
}

Fitness with_times(Fitness fitness, const std::vector<TimedBlock>& blocks, std::size_t contender) {
  for (std::size_t i = 0; i < fitness.sizes.size(); ++i) {
    const TimeSummary times = summarize(times_ms(blocks, contender, i));
    fitness.sizes[i].median_ms = times.median_ms;
    fitness.sizes[i].spread_ms = times.spread_ms;
    fitness.sizes[i].calls = times.calls;
  }
  fitness.speedup = geometric_mean_speedup(fitness.sizes);
  return fitness;
}

Fitness with_reference(Fitness fitness, const std::vector<TimedBlock>& blocks) {
  const std::size_t reference = blocks.at(0).sizes.at(0).contenders_ms.size();
  for (std::size_t i = 0; i < fitness.sizes.size(); ++i) {
    fitness.sizes[i].reference_ms = summarize(times_ms(blocks, reference, i)).median_ms;
  }
  fitness.speedup = geometric_mean_speedup(fitness.sizes);
  return fitness;
}

} // namespace evo
