#include "fitness/spawner.hpp"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace evo {
namespace {

constexpr int first_free_descriptor = 64; // above every number that a child's table uses

[[noreturn]] void throw_errno(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

/// Everything the child needs after fork, when it may call only async-signal-safe functions.
struct ChildPlan {
  explicit ChildPlan(const SpawnRequest& asked) : request(asked) {
    for (const std::string& argument : request.command) {
      arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    add_environment();
  }

  void add_environment() {
    for (const auto& [name, value] : request.environment) {
      variables.push_back(name + "=" + value);
    }
    for (char** variable = environ; *variable; ++variable) {
      const std::string_view text(*variable);
      if (!request.environment.contains(std::string(text.substr(0, text.find('='))))) {
        environment.push_back(*variable);
      }
    }
    for (std::string& variable : variables) {
      environment.push_back(variable.data());
    }
    environment.push_back(nullptr);
  }

  const SpawnRequest& request;
  std::vector<std::string> variables;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  pid_t parent = getpid();
};

void close_from(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, first, ~0U, 0) == 0) {
    return;
  }
#endif
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = first; fd < static_cast<int>(limit.rlim_cur); ++fd) {
    close(fd);
  }
}

void reset_signals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {
    sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Descriptors are first moved out of the way, so that none is overwritten before it is used.
bool arrange_descriptors(const std::vector<int>& descriptors, int& report) {
  const int count = static_cast<int>(descriptors.size());
  int moved[first_free_descriptor];
  report = fcntl(report, F_DUPFD, first_free_descriptor);
  for (int i = 0; i < count; ++i) {
    moved[i] = fcntl(descriptors[i], F_DUPFD, first_free_descriptor);
    if (moved[i] < 0) {
      return false;
    }
  }
  for (int i = 0; i < count; ++i) {
    if (dup2(moved[i], i) < 0) {
      return false;
    }
  }
  if (dup2(report, count) < 0) {
    return false;
  }
  report = count;
  close_from(count + 1);
  return fcntl(report, F_SETFD, FD_CLOEXEC) == 0;
}

/// Runs in the child. Whatever fails, its errno goes to `report`; a successful exec closes it.
[[noreturn]] void become(const ChildPlan& plan, int report) {
  const auto exec = [&] {
    setsid();
    // The parent may have died before prctl: then there will be no signal.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != plan.parent) {
      return;
    }
    if (!arrange_descriptors(plan.request.descriptors, report)) {
      return;
    }
    if (!plan.request.directory.empty() && chdir(plan.request.directory.c_str()) != 0) {
      return;
    }
    reset_signals();
    execvpe(plan.arguments[0], plan.arguments.data(), plan.environment.data());
  };
  exec();
  const int error = errno;
  [[maybe_unused]] const auto written = write(report, &error, sizeof error);
  _exit(127);
}

pid_t fork_and_exec(const SpawnRequest& request) {
  const ChildPlan plan(request);
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    throw_errno(errno, "cannot make a pipe");
  }
  const pid_t pid = fork();
  if (pid == 0) {
    become(plan, report[1]);
  }
  const int fork_error = errno;
  close(report[1]);
  int error = 0;
  ssize_t got = -1;
  if (pid > 0) {
    do {
      got = read(report[0], &error, sizeof error);
    } while (got < 0 && errno == EINTR);
  }
  close(report[0]);
  if (pid < 0) {
    throw_errno(fork_error, "cannot start " + request.command[0]);
  }
  if (got == sizeof error) {
    waitpid(pid, nullptr, 0);
    throw_errno(error, "cannot start " + request.command[0]);
  }
  return pid;
}

/// PR_SET_PDEATHSIG binds a child to the THREAD that forked it: the child of a pool's thread would
/// be killed when the pool shrinks. So one thread, which lives as long as the process, forks them
/// all.
class Spawner {
public:
  static Spawner& instance() {
    static Spawner& spawner = *new Spawner; // never destroyed: its thread outlives main
    return spawner;
  }

  std::future<pid_t> post(SpawnRequest request) {
    std::packaged_task<pid_t()> task(
        [request = std::move(request)] { return fork_and_exec(request); });
    std::future<pid_t> pid = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    posted_.notify_one();
    return pid;
  }

private:
  Spawner() {
    // Inherited as ignored from some launchers; then children could not be waited for.
    signal(SIGCHLD, SIG_DFL);
    std::thread([this] { serve(); }).detach();
  }

  [[noreturn]] void serve() {
    sigset_t all; // our handlers must run neither here nor in a child that has not exec'd yet
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (true) {
      std::unique_lock lock(mutex_);
      posted_.wait(lock, [this] { return !tasks_.empty(); });
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::packaged_task<pid_t()>> tasks_;
};

} // namespace

pid_t spawn(SpawnRequest request) {
  return Spawner::instance().post(std::move(request)).get();
}

} // namespace evo
