// The engine's end of the worker: starts it, talks to it, kills and replaces it.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>

#include "fitness/deadline.hpp"
#include "fitness/process.hpp"
#include "fitness/protocol.hpp"

namespace evo {

/// No worker is to be had, whoever is to be judged.
class NoWorker : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct WorkerDeadlines {
  std::chrono::milliseconds prepare{180000};
  std::chrono::milliseconds judge{deadline_without_incumbent}; // where a call names no other
  std::chrono::milliseconds verify{180000};
};

/// One worker process for one device; calls are serial. A candidate that crashes or hangs the
/// worker costs that candidate its verdict and the engine one restart.
///
/// `standbys` more processes wait, started as far as they can be without inputs: one of them takes
/// over in the time that inputs and references take to compute. They do nothing while they wait.
class WorkerClient {
public:
  WorkerClient(std::filesystem::path worker, PrepareRequest request, WorkerDeadlines deadlines,
               int standbys = 0);
  ~WorkerClient();

  /// Starts the worker if it is not running. A PrepareResponse with `error` set when the backend
  /// cannot be used or the worker dies twice in a row.
  const PrepareResponse& prepare(std::stop_token stop = {});

  /// Never throws for a candidate's fault: Crash and Hang are verdicts. A stop is Hang, "stopped".
  /// Throws NoWorker with prepare()'s error when there is none to be had.
  JudgeResponse judge(const JudgeRequest& request, std::stop_token stop = {}) {
    return judge(request, deadlines_.judge, std::move(stop));
  }
  JudgeResponse judge(const JudgeRequest& request, std::chrono::milliseconds deadline,
                      std::stop_token stop = {});

  /// Likewise. `culprit` stays empty where the worker died of one of the contenders.
  CompareResponse compare(const CompareRequest& request, std::stop_token stop = {}) {
    return compare(request, deadlines_.judge, std::move(stop));
  }
  CompareResponse compare(const CompareRequest& request, std::chrono::milliseconds deadline,
                          std::stop_token stop = {});

  /// As judge(), and with the time that many more calls take.
  VerifyResponse verify(const VerifyRequest& request, std::stop_token stop = {});

  /// Ends the process, if there is one: the next request begins in a fresh one. Standbys that take
  /// over from here on are not replaced, so that nothing starts beside what is measured.
  void renew() {
    process_.reset();
    standby_count_ = 0;
  }

  int restarts() const { return starts_ > 1 ? starts_ - 1 : 0; }

private:
  struct Starting {
    std::unique_ptr<ChannelProcess> process;
    std::string token; // of the preparation under way
  };

  Starting start_standby() const;
  Starting take_standby();
  void fill_standbys();
  PrepareResponse start(std::stop_token stop);
  PrepareResponse hear_preparation(ChannelProcess& process, const std::string& token,
                                   std::stop_token stop) const;
  template <typename Response>
  Response ask(const Request& request, std::chrono::milliseconds deadline, std::stop_token stop);
  void retire();
  template <typename Response> Response blame(Verdict verdict, std::string detail);

  std::filesystem::path worker_;
  PrepareRequest request_;
  WorkerDeadlines deadlines_;
  std::size_t standby_count_;
  std::deque<Starting> standbys_; // the one that has waited longest first
  std::unique_ptr<ChannelProcess> process_;
  std::unique_ptr<ChannelProcess> dying_; // killed, not yet gone
  PrepareResponse prepared_;
  int starts_ = 0;
};

/// evo-worker beside the running program, or EVO_WORKER; InputError when there is none.
std::filesystem::path find_worker();

} // namespace evo
