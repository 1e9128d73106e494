#include "population/proposal_cache.hpp"

#include <cstddef>
#include <exception>

namespace evo {
namespace {

constexpr std::size_t capacity = 2000; // entries, of some 100 KiB where tiles have many shapes

} // namespace

ProposalCache::Proposals ProposalCache::get(const Key& key,
                                            const std::function<std::vector<Rewrite>()>& propose) {
  std::promise<Proposals> promise;
  {
    std::unique_lock lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) {
      const std::shared_future<Proposals> answer = found->second;
      lock.unlock();
      return answer.get();
    }
    if (known_.size() == capacity) {
      known_.clear();
    }
    known_.emplace(key, promise.get_future().share());
  }
  try {
    auto proposals = std::make_shared<const std::vector<Rewrite>>(propose());
    promise.set_value(proposals);
    return proposals;
  } catch (...) {
    promise.set_exception(std::current_exception());
    throw;
  }
}

} // namespace evo
