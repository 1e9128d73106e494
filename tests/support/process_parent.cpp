// Starts a child that would live for a minute, from a thread, and waits for it. Its caller kills it
// and looks whether the child dies with it.
#include <thread>

#include "fitness/process.hpp"

int main(int, char** argv) {
  std::thread([file = std::string(argv[1])] {
    evo::run_process({"sh", "-c", "echo $$ > " + file + "; exec sleep 60"}, {});
  }).join();
}
