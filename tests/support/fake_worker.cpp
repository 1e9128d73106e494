// A worker without a device: what a request asks it to judge is what it does. A library called
// "4 then 3.9" takes 4 ms when it is judged and 3.9 ms when it is compared; "4 then suspicious" is
// found out there, and "4 then fail a case" when it is verified.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

#include "fitness/protocol.hpp"

namespace {

using evo::Verdict;
using nlohmann::json;

std::string read_line() {
  std::string line;
  char c = 0;
  while (read(3, &c, 1) == 1 && c != '\n') {
    line += c;
  }
  return line;
}

std::string token;      // of the request under way
std::string last_token; // of the one before it

void write_line(std::string line) {
  line += '\n';
  if (write(4, line.data(), line.size()) < 0) {
    std::exit(1);
  }
}

void send(json response, const std::string& with_token) {
  response["token"] = with_token;
  write_line(response.dump());
}

json response(Verdict verdict, bool leaving = false) {
  evo::JudgeResponse judged;
  judged.fitness.verdict = verdict;
  judged.leaving = leaving;
  return judged;
}

void answer(Verdict verdict, bool leaving = false) {
  send(response(verdict, leaving), token);
}

void flood() {
  for (int i = 0; i < 200000; ++i) {
    std::cout << "a line of a candidate's own {\"fitness\": 1}\n";
  }
}

void misbehave(const std::string& how) {
  if (how == "crash") {
    std::cerr << "about to fall\n";
    std::raise(SIGSEGV);
  } else if (how == "hang") {
    std::signal(SIGTERM, SIG_IGN);
    while (true) {
      pause();
    }
  } else if (how == "exit") {
    std::exit(0);
  } else if (how == "flood") {
    flood();
    answer(Verdict::Ok);
  } else if (how == "flood and crash") {
    flood();
    std::abort();
  } else if (how == "garbage") {
    write_line("{\"fitness\": \"great\"}");
  } else if (how == "forged") {
    write_line(response(Verdict::Ok).dump());
    answer(Verdict::WrongAnswer);
  } else if (how == "half a line") {
    write(4, "ha", 2) == 2 ? answer(Verdict::Ok) : std::exit(1);
  } else if (how == "late answer") {
    send(response(Verdict::Ok), last_token);
  } else if (how == "two answers") {
    answer(Verdict::WrongAnswer);
    answer(Verdict::Ok);
  } else if (how == "launch error") {
    answer(Verdict::LaunchError, true);
    std::exit(0);
  } else if (how == "silent exit") {
    answer(Verdict::LaunchError);
    std::exit(0);
  } else {
    answer(Verdict::Ok);
  }
}

/// The words of "4 then 3.9".
std::pair<std::string, std::string> judged_then_compared(const std::string& library) {
  const std::string then = " then ";
  const auto at = library.find(then);
  return at == std::string::npos
             ? std::pair{library, library}
             : std::pair{library.substr(0, at), library.substr(at + then.size())};
}

bool is_time(const std::string& words) {
  return !words.empty() && words.find_first_not_of("0123456789.") == std::string::npos;
}

void judge(const evo::JudgeRequest& request) {
  const std::string words = judged_then_compared(request.library).first;
  if (!is_time(words)) {
    misbehave(words);
    return;
  }
  evo::JudgeResponse response;
  response.fitness.verdict = Verdict::Ok;
  response.fitness.measured = true;
  for (const int size : request.sizes) {
    response.fitness.sizes.push_back(
        {.size = size, .median_ms = std::stod(words), .reference_ms = 4});
  }
  response.fitness.speedup = evo::geometric_mean_speedup(response.fitness.sizes);
  send(response, token);
}

void verify(const evo::VerifyRequest& request) {
  evo::VerifyResponse response;
  response.verdict = Verdict::Ok;
  response.verification.level = request.level;
  response.verification.calls = request.calls;
  const std::string words = judged_then_compared(request.library).second;
  if (words == "fail a case") {
    response.fail(Verdict::WrongAnswer, "in a case");
  } else if (words == "crash in a case") {
    misbehave("crash");
  }
  send(response, token);
}

void compare(const evo::CompareRequest& request) {
  evo::CompareResponse response;
  response.verdict = Verdict::Ok;
  for (int i = 0; i < request.blocks; ++i) {
    evo::TimedBlock block;
    for (const int size : request.sizes) {
      evo::BlockTimes times{.size = size, .contenders_ms = {}, .reference_ms = {4, 4}};
      for (const evo::Contender& contender : request.contenders) {
        const std::string words = judged_then_compared(contender.library).second;
        if (words == "crash") {
          misbehave(words);
        }
        if (!is_time(words)) {
          response.fail(*evo::verdict_from(words), "found out");
          response.culprit = contender.id;
          send(response, token);
          return;
        }
        const double ms = std::stod(words) * (1 + 1e-4 * (i % 3)); // some noise
        times.contenders_ms.push_back({ms, ms});
      }
      block.sizes.push_back(std::move(times));
    }
    response.blocks.push_back(std::move(block));
  }
  send(response, token);
}

/// Adds this process's number to the file named by EVO_FAKE_PIDS.
void report_number() {
  if (const char* file = std::getenv("EVO_FAKE_PIDS")) {
    std::ofstream(file, std::ios::app) << getpid() << '\n';
  }
}

/// A reference that is not handed over takes as many milliseconds as this process's number.
void prepare(const evo::PrepareRequest& request) {
  evo::PrepareResponse prepared;
  prepared.device_name = "fake";
  if (request.device != 0) {
    prepared.error = "there is no such device";
  }
  for (const int size : request.sizes) {
    evo::SizeResult measured;
    measured.size = size;
    measured.reference_ms =
        request.reference.empty() ? getpid() : request.reference[0].reference_ms;
    prepared.reference.push_back(measured);
  }
  send(prepared, token);
}

/// As a worker that loads libraries: EVO_FAKE_START is in milliseconds.
void start_slowly() {
  if (const char* start = std::getenv("EVO_FAKE_START")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(start)));
  }
}

/// Dies in as many preparations as the file named by EVO_FAKE_DEATHS says, counting it down.
void maybe_die() {
  const char* file = std::getenv("EVO_FAKE_DEATHS");
  int deaths = 0;
  if (file && std::ifstream(file) >> deaths && deaths > 0) {
    std::ofstream(file) << deaths - 1;
    std::raise(SIGKILL);
  }
}

} // namespace

int main() {
  report_number();
  maybe_die();
  start_slowly();
  for (std::string line = read_line(); !line.empty(); line = read_line()) {
    const json message = json::parse(line);
    last_token = std::exchange(token, message.at("token"));
    const evo::Request asked = evo::decode_request(message);
    if (const auto* preparation = std::get_if<evo::PrepareRequest>(&asked)) {
      prepare(*preparation);
    } else if (const auto* comparison = std::get_if<evo::CompareRequest>(&asked)) {
      compare(*comparison);
    } else if (const auto* verification = std::get_if<evo::VerifyRequest>(&asked)) {
      verify(*verification);
    } else {
      judge(std::get<evo::JudgeRequest>(asked));
    }
  }
}
