// Starts what would live for a minute, from a thread, and waits for it; its caller kills it and
// looks whether all of it dies too. process_parent FILE: a child that writes its number to FILE.
// process_parent FILE WORKER: a worker of that program and its standbys, which do so.
#include <chrono>
#include <thread>

#include "fitness/worker_client.hpp"

int main(int count, char** arguments) {
  std::thread([=] {
    if (count == 2) {
      evo::run_process({"sh", "-c", std::string("echo $$ > ") + arguments[1] + "; exec sleep 60"},
                       {});
    } else {
      evo::WorkerClient client(arguments[2], {}, {}, 2);
      client.prepare();
      std::this_thread::sleep_for(std::chrono::minutes(1));
    }
  }).join();
}
