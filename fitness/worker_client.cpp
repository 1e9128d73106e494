#include "fitness/worker_client.hpp"

#include <cstdlib>
#include <optional>
#include <random>
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

/// Nobody guesses it.
std::string new_token() {
  std::random_device random; // the system's
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

void send(ChannelProcess& process, const Request& request, const std::string& token) {
  json message = encode(request);
  message["token"] = token;
  process.send(message.dump()); // if this fails, so does receive
}

/// The answer to the request with this token; nullopt for any other line.
template <typename Response>
std::optional<Response> answer(const std::string& line, const std::string& token) {
  try {
    const json message = json::parse(line);
    return message.at("token") == token ? std::optional(message.get<Response>()) : std::nullopt;
  } catch (const std::exception&) { // json's, or an unknown verdict
    return std::nullopt;
  }
}

double seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

} // namespace

WorkerClient::WorkerClient(std::filesystem::path worker, PrepareRequest request,
                           WorkerDeadlines deadlines, int standbys)
    : worker_(std::move(worker)), request_(std::move(request)), deadlines_(deadlines),
      standby_count_(static_cast<std::size_t>(standbys)) {}

WorkerClient::~WorkerClient() {
  for (const Starting& standby : standbys_) { // all at once, for each takes a while
    standby.process->terminate();
  }
}

const PrepareResponse& WorkerClient::prepare(std::stop_token stop) {
  if (process_ && process_->running()) {
    return prepared_;
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      const bool worked_before = !request_.reference.empty();
      prepared_ = start(stop);
      if (prepared_.error.empty()) {
        request_.reference = prepared_.reference;
        fill_standbys();
        return prepared_;
      }
      if (worked_before &&
          !stop.stop_requested()) { // the one before may not have left enough memory
        throw std::runtime_error(prepared_.error);
      }
      process_.reset();
      return prepared_;
    } catch (const std::runtime_error& death) { // worth one more try
      process_.reset();
      standbys_.clear(); // what ended one may have ended all
      prepared_ = {};
      prepared_.error = fmt::format("{} could not be prepared: {}", worker_.string(), death.what());
    }
  }
  return prepared_;
}

/// Throws std::runtime_error when the worker dies, hangs or raves.
PrepareResponse WorkerClient::start(std::stop_token stop) {
  Starting starting = take_standby();
  process_ = std::move(starting.process);
  ++starts_;
  const std::string token = new_token();
  send(*process_, request_, token); // waits its turn in the channel
  dying_.reset();                   // before anything is timed
  PrepareResponse response = hear_preparation(*process_, starting.token, stop);
  return response.error.empty() ? hear_preparation(*process_, token, stop) : response;
}

/// Throws as start().
PrepareResponse WorkerClient::hear_preparation(ChannelProcess& process, const std::string& token,
                                               std::stop_token stop) const {
  std::string line;
  switch (process.receive(line, deadlines_.prepare, stop)) {
  case ChannelProcess::Read::Line:
    if (auto response = answer<PrepareResponse>(line, token)) {
      return std::move(*response);
    }
    throw std::runtime_error(garbage(line));
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
  throw std::runtime_error(how_it_ended(process));
}

WorkerClient::Starting WorkerClient::start_standby() const {
  Starting starting{std::make_unique<ChannelProcess>(std::vector<std::string>{worker_.string()}),
                    new_token()};
  PrepareRequest without_sizes = request_;
  without_sizes.sizes.clear();
  send(*starting.process, without_sizes, starting.token);
  return starting;
}

WorkerClient::Starting WorkerClient::take_standby() {
  if (standbys_.empty()) {
    return start_standby();
  }
  Starting first = std::move(standbys_.front());
  standbys_.pop_front();
  return first;
}

void WorkerClient::fill_standbys() {
  try {
    while (standbys_.size() < standby_count_) {
      standbys_.push_back(start_standby());
    }
  } catch (const std::system_error&) {
    return; // no process to be had now: a restart will take longer
  }
}

JudgeResponse WorkerClient::judge(const JudgeRequest& request, std::chrono::milliseconds deadline,
                                  std::stop_token stop) {
  return ask<JudgeResponse>(request, deadline, std::move(stop));
}

CompareResponse WorkerClient::compare(const CompareRequest& request,
                                      std::chrono::milliseconds deadline, std::stop_token stop) {
  return ask<CompareResponse>(request, deadline, std::move(stop));
}

VerifyResponse WorkerClient::verify(const VerifyRequest& request, std::stop_token stop) {
  return ask<VerifyResponse>(request, deadlines_.verify, std::move(stop));
}

template <typename Response>
Response WorkerClient::ask(const Request& request, std::chrono::milliseconds deadline,
                           std::stop_token stop) {
  // One that has exited between two requests, or spoken out of turn, is replaced here, at nobody's
  // expense.
  if (process_ && process_->has_unread()) {
    retire();
  }
  const std::string& error = prepare(stop).error;
  if (stop.stop_requested()) { // also where a quick worker would answer before it is noticed
    return blame<Response>(Verdict::Hang, "stopped");
  }
  if (!error.empty()) {
    throw NoWorker(error);
  }
  const std::string token = new_token();
  send(*process_, request, token);
  std::string line;
  switch (process_->receive(line, deadline, stop)) {
  case ChannelProcess::Read::Line:
    if (auto response = answer<Response>(line, token)) {
      if (response->leaving) {
        retire();
      }
      return std::move(*response);
    }
    return blame<Response>(Verdict::Crash, fmt::format("it wrote into the result channel: {}",
                                                       line.substr(0, longest_quote)));
  case ChannelProcess::Read::Timeout:
    if (stop.stop_requested()) {
      return blame<Response>(Verdict::Hang, "stopped");
    }
    return blame<Response>(Verdict::Hang,
                           fmt::format("no answer within {:g} s", seconds(deadline)));
  case ChannelProcess::Read::Closed:
    break;
  }
  return blame<Response>(Verdict::Crash, how_it_ended(*process_));
}

void WorkerClient::retire() {
  if (process_) {
    process_->terminate();
    dying_ = std::move(process_);
  }
}

/// A worker whose answer is not awaited any more is of no use: it ends with the candidate.
template <typename Response> Response WorkerClient::blame(Verdict verdict, std::string detail) {
  retire();
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
