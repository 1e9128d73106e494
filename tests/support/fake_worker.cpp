// A worker without a device: what a request asks it to judge is what it does. A library called
// "4 then 3.9" takes 4 ms when it is judged and 3.9 ms when it is compared; "4 then suspicious" is
// found out there, and "4 then fail a case" when it is verified.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

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

void write_line(std::string line) {
  line += '\n';
  if (write(4, line.data(), line.size()) < 0) {
    std::exit(1);
  }
}

void answer(Verdict verdict, bool leaving = false) {
  evo::JudgeResponse response;
  response.fitness.verdict = verdict;
  response.leaving = leaving;
  write_line(json(response).dump());
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
    for (int i = 0; i < 200000; ++i) {
      std::cout << "a line of a candidate's own {\"fitness\": 1}\n";
    }
    answer(Verdict::Ok);
  } else if (how == "garbage") {
    write_line("{\"fitness\": \"great\"}");
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
  write_line(json(response).dump());
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
  write_line(json(response).dump());
}

void compare(const evo::CompareRequest& request) {
  evo::CompareResponse response;
  response.verdict = Verdict::Ok;
  for (int i = 0; i < request.blocks; ++i) {
    evo::Block block;
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
          write_line(json(response).dump());
          return;
        }
        const double ms = std::stod(words) * (1 + 1e-4 * (i % 3)); // some noise
        times.contenders_ms.push_back({ms, ms});
      }
      block.sizes.push_back(std::move(times));
    }
    response.blocks.push_back(std::move(block));
  }
  write_line(json(response).dump());
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
  maybe_die();
  const auto request = json::parse(read_line()).get<evo::PrepareRequest>();
  evo::PrepareResponse prepared;
  prepared.device_name = "fake";
  if (request.device != 0) {
    prepared.error = "there is no such device";
  }
  write_line(json(prepared).dump());
  for (std::string line = read_line(); !line.empty(); line = read_line()) {
    const evo::Request asked = evo::decode_request(json::parse(line));
    if (const auto* comparison = std::get_if<evo::CompareRequest>(&asked)) {
      compare(*comparison);
    } else if (const auto* verification = std::get_if<evo::VerifyRequest>(&asked)) {
      verify(*verification);
    } else {
      judge(std::get<evo::JudgeRequest>(asked));
    }
  }
}
