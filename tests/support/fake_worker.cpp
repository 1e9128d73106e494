// A worker without a device: what a request asks it to judge is what it does.
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
    misbehave(std::get<evo::JudgeRequest>(asked).library);
  }
}
