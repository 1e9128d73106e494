// The engine's end of the worker: starts it, talks to it, kills and restarts it.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

#include "fitness/process.hpp"
#include "fitness/protocol.hpp"

namespace evo {

struct WorkerDeadlines {
  std::chrono::milliseconds prepare{180000};
  std::chrono::milliseconds judge{60000};
  std::chrono::milliseconds verify{180000};
};

/// One worker process for one device; calls are serial. A candidate that crashes or hangs the
/// worker costs that candidate its verdict and the engine one restart.
class WorkerClient {
public:
  WorkerClient(std::filesystem::path worker, PrepareRequest request, WorkerDeadlines deadlines);
  ~WorkerClient();

  /// Starts the worker if it is not running. A PrepareResponse with `error` set when the backend
  /// cannot be used or the worker dies twice in a row.
  const PrepareResponse& prepare(std::stop_token stop = {});

  /// Never throws for a candidate's fault: Crash and Hang are verdicts. A stop is Hang, "stopped".
  /// Throws std::runtime_error with prepare()'s error when there is no worker to be had.
  JudgeResponse judge(const JudgeRequest& request, std::stop_token stop = {});

  /// Likewise. `culprit` stays empty where the worker died of one of the contenders.
  CompareResponse compare(const CompareRequest& request, std::stop_token stop = {});

  /// As judge(), and with the time that many more calls take.
  VerifyResponse verify(const VerifyRequest& request, std::stop_token stop = {});

  /// Ends the process, if there is one: the next request begins in a fresh one.
  void renew() { process_.reset(); }

  int restarts() const { return starts_ > 1 ? starts_ - 1 : 0; }

private:
  PrepareResponse start(std::stop_token stop);
  template <typename Response>
  Response ask(const Request& request, std::chrono::milliseconds deadline, std::stop_token stop);
  template <typename Response> Response blame(Verdict verdict, std::string detail);

  std::filesystem::path worker_;
  PrepareRequest request_;
  WorkerDeadlines deadlines_;
  std::unique_ptr<ChannelProcess> process_;
  PrepareResponse prepared_;
  int starts_ = 0;
};

/// evo-worker beside the running program, or EVO_WORKER; InputError when there is none.
std::filesystem::path find_worker();

} // namespace evo
