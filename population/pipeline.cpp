#include "population/pipeline.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "fitness/problem.hpp"
#include "fitness/worker_client.hpp"
#include "population/clock.hpp"
#include "population/waiting_pool.hpp"

namespace evo {
namespace {

namespace flow = oneapi::tbb::flow;

struct Batch {
  std::vector<std::optional<Individual>> results; // by slot; empty: stopped before it had one
  std::size_t open = 0;
};

/// One individual on its way; a single node works on it at any time.
struct Child {
  enum class State { Open, Settled, Stopped };

  std::size_t sequence = 0; // over the whole run
  std::shared_ptr<Batch> batch;
  std::size_t index = 0; // in the batch
  Pipeline::Propose propose;
  State state = State::Open;
  Individual individual;
  Built built;
  Clock::time_point built_at;
  std::shared_ptr<Child> original; // of the same source or binary
  bool again = false;              // settled before; judged once more

  bool open() const { return state == State::Open; }
  void fail(Verdict verdict, std::string detail) {
    individual.fitness = failed(verdict, std::move(detail));
    state = State::Settled;
  }
};

/// evo's own fault, which showed in one candidate.
class CandidateFault : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Runs what deals with one candidate. What tells of the system passes through.
template <typename Work> auto for_candidate(Work work) {
  try {
    return work();
  } catch (const InputError&) {
    throw;
  } catch (const NoWorker&) {
    throw;
  } catch (const std::system_error&) { // a full disk, say
    throw;
  } catch (const std::exception& fault) {
    throw CandidateFault(fault.what());
  }
}

using Message = std::shared_ptr<Child>;
using FirstOf = std::map<std::string, Message>; // by digest

} // namespace

class Pipeline::Graph {
public:
  Graph(FitnessEvaluator& evaluator, int jobs, std::stop_token stop, PipelineEvents events);
  ~Graph();

  void submit(int generation, int first_slot, std::vector<Propose> proposals);
  void restore(const std::vector<Individual>& settled);
  void submit_again(const std::vector<Individual>& individuals);
  std::vector<Individual> wait();

private:
  using Sequencer = flow::sequencer_node<Message>;
  using Step = flow::function_node<Message, Message>;
  using Wait = flow::async_node<Message, Message>;

  /// The nodes live in our arena: they are made inside it.
  struct Nodes {
    explicit Nodes(Graph& self);
    flow::graph graph;
    Step propose;
    Sequencer proposed;
    Step meet;
    Wait build;
    Sequencer built;
    Wait judge;
    flow::function_node<Message> collect;
  };

  using Action = void (Graph::*)(const Message&);
  void start(std::vector<Message> children);
  void guarded(Action action, const Message& message);
  void hand_over(Action action, const Message& message, Wait::gateway_type& gateway,
                 WaitingPool& pool);

  void propose(const Message& message);
  void meet(const Message& message);
  void build(const Message& message);
  void judge(const Message& message);
  void settle_duplicate(Child& candidate);
  void measure(Child& candidate);
  void collect(const Message& message);

  FitnessEvaluator& evaluator_;
  PipelineEvents events_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> forward_stop_;

  FirstOf by_source_; // of `meet`
  FirstOf by_binary_; // of `judge`
  std::optional<Incumbent> incumbent_;

  std::mutex mutex_; // of what follows up to the count
  std::condition_variable batch_done_;
  std::deque<std::shared_ptr<Batch>> batches_;
  std::exception_ptr error_; // the first
  std::size_t submitted_ = 0;

  // One more than the jobs, for TBB counts the thread that waits among its own.
  oneapi::tbb::global_control parallelism_;
  oneapi::tbb::task_arena arena_;
  std::unique_ptr<Nodes> nodes_;
  WaitingPool builders_;
  WaitingPool judge_;
};

Pipeline::Graph::Nodes::Nodes(Graph& self)
    : propose(graph, flow::unlimited,
              [&self](Message message) {
                self.guarded(&Graph::propose, message);
                return message;
              }),
      proposed(graph, [](const Message& message) { return message->sequence; }),
      meet(graph, flow::serial,
           [&self](Message message) {
             self.meet(message);
             return message;
           }),
      build(graph, flow::serial,
            [&self](const Message& message, Wait::gateway_type& gateway) {
              self.hand_over(&Graph::build, message, gateway, self.builders_);
            }),
      built(graph, [](const Message& message) { return message->sequence; }),
      judge(graph, flow::serial,
            [&self](const Message& message, Wait::gateway_type& gateway) {
              self.hand_over(&Graph::judge, message, gateway, self.judge_);
            }),
      collect(graph, flow::serial, [&self](const Message& message) {
        self.collect(message);
        return flow::continue_msg();
      }) {
  flow::make_edge(propose, proposed);
  flow::make_edge(proposed, meet);
  flow::make_edge(meet, build);
  flow::make_edge(build, built);
  flow::make_edge(built, judge);
  flow::make_edge(judge, collect);
}

Pipeline::Graph::Graph(FitnessEvaluator& evaluator, int jobs, std::stop_token stop,
                       PipelineEvents events)
    : evaluator_(evaluator), events_(std::move(events)),
      forward_stop_(std::move(stop), [this] { stop_.request_stop(); }),
      parallelism_(oneapi::tbb::global_control::max_allowed_parallelism,
                   static_cast<std::size_t>(jobs) + 1),
      arena_(jobs + 1), builders_(jobs), judge_(1) {
  arena_.execute([this] { nodes_ = std::make_unique<Nodes>(*this); });
}

Pipeline::Graph::~Graph() {
  stop_.request_stop();
  nodes_->graph.wait_for_all();
}

void Pipeline::Graph::submit(int generation, int first_slot, std::vector<Propose> proposals) {
  std::vector<Message> children;
  for (Propose& propose : proposals) {
    auto child = std::make_shared<Child>();
    child->propose = std::move(propose);
    child->individual.generation = generation;
    child->individual.slot = first_slot + static_cast<int>(children.size());
    children.push_back(std::move(child));
  }
  start(std::move(children));
}

void Pipeline::Graph::submit_again(const std::vector<Individual>& individuals) {
  std::vector<Message> children;
  for (const Individual& individual : individuals) {
    auto child = std::make_shared<Child>();
    child->individual = individual;
    child->individual.elite = false;
    child->again = true;
    children.push_back(std::move(child));
  }
  start(std::move(children));
}

void Pipeline::Graph::start(std::vector<Message> children) {
  auto batch = std::make_shared<Batch>();
  batch->results.resize(children.size());
  batch->open = children.size();
  {
    const std::lock_guard lock(mutex_);
    batches_.push_back(batch);
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    children[i]->sequence = submitted_++;
    children[i]->batch = batch;
    children[i]->index = i;
    nodes_->propose.try_put(children[i]);
  }
}

void Pipeline::Graph::restore(const std::vector<Individual>& settled) {
  for (const Individual& individual : settled) {
    auto child = std::make_shared<Child>();
    child->state = Child::State::Settled;
    child->individual = individual;
    by_source_.try_emplace(individual.genome.id, child);
    if (!individual.binary.empty()) {
      by_binary_.try_emplace(individual.binary, child);
    }
  }
}

std::vector<Individual> Pipeline::Graph::wait() {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Batch> batch = batches_.front();
  batch_done_.wait(lock, [&] { return batch->open == 0; });
  batches_.pop_front();
  if (error_) {
    std::rethrow_exception(error_);
  }
  std::vector<Individual> results;
  for (auto& result : batch->results) {
    if (result) {
      results.push_back(std::move(*result));
    }
  }
  return results;
}

/// What is wrong with one candidate alone is its verdict. Any other exception is kept for wait():
/// one that left a node would cancel the graph, and with it the counting that wait() relies on.
void Pipeline::Graph::guarded(Action action, const Message& message) {
  try {
    (this->*action)(message);
  } catch (const CandidateFault& fault) {
    message->fail(Verdict::Fault, fault.what());
  } catch (...) {
    message->state = Child::State::Stopped;
    stop_.request_stop();
    const std::lock_guard lock(mutex_);
    if (!error_) {
      error_ = std::current_exception();
    }
  }
}

void Pipeline::Graph::hand_over(Action action, const Message& message, Wait::gateway_type& gateway,
                                WaitingPool& pool) {
  gateway.reserve_wait();
  pool.run([this, action, message, &gateway] {
    guarded(action, message);
    gateway.try_put(message);
    gateway.release_wait();
  });
}

void Pipeline::Graph::propose(const Message& message) {
  Child& candidate = *message;
  const auto propose = std::exchange(candidate.propose, nullptr); // frees what it holds
  if (stop_.stop_requested()) {
    candidate.state = Child::State::Stopped;
    return;
  }
  if (candidate.again) {
    return;
  }
  const auto start = Clock::now();
  Proposal proposal = for_candidate(propose);
  Individual& individual = candidate.individual;
  individual.genome = std::move(proposal.genome);
  individual.parents = std::move(proposal.parents);
  individual.mutator = std::move(proposal.mutator);
  individual.dropped = std::move(proposal.dropped);
  individual.timing.propose_s = seconds_since(start);
  if (!proposal.fault.empty()) {
    candidate.fail(Verdict::Fault, std::move(proposal.fault));
  }
}

void Pipeline::Graph::meet(const Message& message) {
  if (message->open() && !message->again) {
    const auto [first, fresh] = by_source_.try_emplace(message->individual.genome.id, message);
    if (!fresh) {
      message->original = first->second;
    }
  }
}

void Pipeline::Graph::build(const Message& message) {
  Child& candidate = *message;
  if (!candidate.open() || candidate.original) {
    return;
  }
  const auto start = Clock::now();
  candidate.individual.stage = Stage::Build;
  auto result = for_candidate(
      [&] { return evaluator_.build(candidate.individual.genome, stop_.get_token()); });
  candidate.built_at = Clock::now();
  candidate.individual.timing.build_s = seconds_since(start);
  if (auto* built = std::get_if<Built>(&result)) {
    candidate.individual.built = true;
    candidate.individual.kernels = built->kernels;
    candidate.individual.binary = built->binary_digest;
    candidate.built = std::move(*built);
  } else if (stop_.stop_requested()) {
    candidate.state = Child::State::Stopped;
  } else {
    auto& failure = std::get<BuildFailure>(result);
    candidate.fail(failure.verdict, std::move(failure.detail));
    candidate.individual.known = failure.known;
  }
}

void Pipeline::Graph::judge(const Message& message) {
  Child& candidate = *message;
  if (!candidate.open()) {
    return;
  }
  if (!candidate.original && !candidate.again && !candidate.built.binary_digest.empty()) {
    const auto [first, fresh] = by_binary_.try_emplace(candidate.built.binary_digest, message);
    candidate.original = fresh ? nullptr : first->second;
  }
  if (candidate.original) {
    settle_duplicate(candidate);
  } else if (stop_.stop_requested()) {
    candidate.state = Child::State::Stopped;
  } else {
    measure(candidate);
  }
}

/// The original came earlier in the order of submission: it is settled, or never will be.
void Pipeline::Graph::settle_duplicate(Child& candidate) {
  const Child& original = *candidate.original;
  candidate.state = original.state;
  candidate.individual.duplicate_of = original.individual.genome.id;
  candidate.individual.kernels = original.individual.kernels;
  candidate.individual.fitness = original.individual.fitness;
}

void Pipeline::Graph::measure(Child& candidate) {
  Individual& individual = candidate.individual;
  const auto start = Clock::now();
  individual.timing.wait_s = std::chrono::duration<double>(start - candidate.built_at).count();
  const Incumbent* incumbent = incumbent_ ? &*incumbent_ : nullptr;
  individual.stage = Stage::Judge;
  Judgement judgement = for_candidate([&] {
    return evaluator_.judge(individual.genome, candidate.built, incumbent, stop_.get_token());
  });
  individual.timing.judge_s = seconds_since(start);
  if (!judgement.fitness.ok() && stop_.stop_requested()) {
    candidate.state = Child::State::Stopped;
    return;
  }
  individual.elite = makes_an_elite(judgement, incumbent);
  individual.fitness = std::move(judgement.fitness);
  individual.known = judgement.known;
  candidate.state = Child::State::Settled;
  if (judgement.built) {
    candidate.built = std::move(*judgement.built);
  }
  if (judgement.incumbent) {
    incumbent_->fitness = std::move(*judgement.incumbent);
  }
  if (individual.elite) {
    incumbent_ = {individual.genome.id, candidate.built, individual.fitness};
    events_.better(individual);
  }
}

void Pipeline::Graph::collect(const Message& message) {
  const bool settled = message->state == Child::State::Settled;
  if (settled && !message->again) {
    events_.settled(message->individual);
  }
  const std::lock_guard lock(mutex_);
  if (settled) {
    message->batch->results[message->index] = message->individual;
  }
  if (--message->batch->open == 0) {
    batch_done_.notify_all();
  }
}

Pipeline::Pipeline(FitnessEvaluator& evaluator, int jobs, std::stop_token stop,
                   PipelineEvents events)
    : graph_(std::make_unique<Graph>(evaluator, jobs, std::move(stop), std::move(events))) {}

Pipeline::~Pipeline() = default;

void Pipeline::submit(int generation, int first_slot, std::vector<Propose> proposals) {
  graph_->submit(generation, first_slot, std::move(proposals));
}

void Pipeline::restore(const std::vector<Individual>& settled) {
  graph_->restore(settled);
}

void Pipeline::submit_again(const std::vector<Individual>& individuals) {
  graph_->submit_again(individuals);
}

std::vector<Individual> Pipeline::wait() {
  return graph_->wait();
}

} // namespace evo
