// What mutators proposed before. A mutator is a pure function that can take a second of evaluation,
// and a good parent is asked again and again.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mutators/rewrite.hpp"

namespace evo {

class ProposalCache {
public:
  using Key = std::pair<std::string, std::string>; // genome id, mutator
  using Proposals = std::shared_ptr<const std::vector<Rewrite>>;

  /// What was proposed, or else what `propose` gives or throws; threads that ask for the same at
  /// the same time wait for one answer. Thread-safe.
  Proposals get(const Key& key, const std::function<std::vector<Rewrite>()>& propose);

private:
  std::mutex mutex_;
  std::map<Key, std::shared_future<Proposals>> known_;
};

} // namespace evo
