#include "fitness/worker_client.hpp"

#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace evo {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds grace_to_end{1000}; // for one that has closed its channel
constexpr std::size_t longest_quote = 200;

/// The last line of a log that says something, for a message.
std::string last_words(const std::string& log) {
  const auto end = log.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) {
    return "";
  }
  const auto begin = log.find_last_of('\n', end) + 1; // npos + 1 is 0
  return fmt::format("; it last printed: {}",
                     log.substr(begin, std::min(end + 1 - begin, longest_quote)));
}

std::string how_it_ended(ChannelProcess& process) {
  const ProcessResult result = process.kill(grace_to_end);
  return fmt::format("the worker ended with {}{}", result.reason(), last_words(result.output));
}

std::string garbage(const std::string& line) {
  return fmt::format("the worker answered with something that is not an answer: {}",
                     line.substr(0, longest_quote));
}

double seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

} // namespace

WorkerClient::WorkerClient(std::filesystem::path worker, PrepareRequest request,
                           WorkerDeadlines deadlines)
    : worker_(std::move(worker)), request_(std::move(request)), deadlines_(deadlines) {}

WorkerClient::~WorkerClient() = default;

const PrepareResponse& WorkerClient::prepare(std::stop_token stop) {
  if (process_ && process_->running()) {
    return prepared_;
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      prepared_ = start(stop);
      if (!prepared_.error.empty()) {
        process_.reset();
      }
      return prepared_;
    } catch (const std::runtime_error& death) { // worth one more try
      process_.reset();
      prepared_ = {};
      prepared_.error = fmt::format("{} could not be prepared: {}", worker_.string(), death.what());
    }
  }
  return prepared_;
}

/// Throws std::runtime_error when the worker dies, hangs or raves.
PrepareResponse WorkerClient::start(std::stop_token stop) {
  process_ = std::make_unique<ChannelProcess>(std::vector<std::string>{worker_.string()});
  ++starts_;
  std::string line;
  process_->send(json(request_).dump()); // if this fails, so does receive
  switch (process_->receive(line, deadlines_.prepare, stop)) {
  case ChannelProcess::Read::Line:
    try {
      return json::parse(line).get<PrepareResponse>();
    } catch (const std::exception&) {
      throw std::runtime_error(garbage(line));
    }
  case ChannelProcess::Read::Timeout:
    if (stop.stop_requested()) {
      PrepareResponse stopped;
      stopped.error = "stopped";
      return stopped;
    }
    throw std::runtime_error(fmt::format("no answer within {:g} s", seconds(deadlines_.prepare)));
  case ChannelProcess::Read::Closed:
    break;
  }
  throw std::runtime_error(how_it_ended(*process_));
}

JudgeResponse WorkerClient::judge(const JudgeRequest& request, std::stop_token stop) {
  return ask<JudgeResponse>(request, deadlines_.judge, std::move(stop));
}

CompareResponse WorkerClient::compare(const CompareRequest& request, std::stop_token stop) {
  return ask<CompareResponse>(request, deadlines_.judge, std::move(stop));
}

VerifyResponse WorkerClient::verify(const VerifyRequest& request, std::stop_token stop) {
  return ask<VerifyResponse>(request, deadlines_.verify, std::move(stop));
}

template <typename Response>
Response WorkerClient::ask(const Request& request, std::chrono::milliseconds deadline,
                           std::stop_token stop) {
  // One that has exited between two requests is replaced here, at nobody's expense.
  if (const std::string& error = prepare(stop).error; !error.empty()) {
    if (stop.stop_requested()) {
      return blame<Response>(Verdict::Hang, "stopped");
    }
    throw std::runtime_error(error);
  }
  std::string line;
  process_->send(encode(request).dump());
  switch (process_->receive(line, deadline, stop)) {
  case ChannelProcess::Read::Line:
    try {
      const auto response = json::parse(line).get<Response>();
      if (response.leaving) {
        process_.reset();
      }
      return response;
    } catch (const std::exception&) {
      return blame<Response>(Verdict::Crash, garbage(line));
    }
  case ChannelProcess::Read::Timeout:
    return blame<Response>(Verdict::Hang,
                           stop.stop_requested()
                               ? "stopped"
                               : fmt::format("no answer within {:g} s", seconds(deadline)));
  case ChannelProcess::Read::Closed:
    break;
  }
  return blame<Response>(Verdict::Crash, how_it_ended(*process_));
}

/// A worker whose answer is not awaited any more is of no use: it ends with the candidate.
template <typename Response> Response WorkerClient::blame(Verdict verdict, std::string detail) {
  process_.reset();
  Response response;
  response.fail(verdict, std::move(detail));
  return response;
}

std::filesystem::path find_worker() {
  namespace fs = std::filesystem;
  if (const char* named = std::getenv("EVO_WORKER")) {
    if (!fs::is_regular_file(named)) {
      throw InputError(fmt::format("EVO_WORKER is {}, which is not a file", named));
    }
    return fs::absolute(named);
  }
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / "evo-worker";
  if (!fs::is_regular_file(beside)) {
    throw InputError(fmt::format("there is no {}: build the target evo-worker, or set EVO_WORKER "
                                 "to where it is",
                                 beside.string()));
  }
  return beside;
}

} // namespace evo
