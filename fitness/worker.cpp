// evo-worker: the process that loads candidates. Requests come on descriptor 3, answers go to 4;
// stdout and stderr are the candidates'. It knows LibTorch and CUDA, and nothing of Clang.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <ATen/core/grad_mode.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <torch/version.h>
#include <unistd.h>

#include "fitness/device.hpp"
#include "fitness/traces.hpp"

namespace evo {
namespace {

using nlohmann::json;

/// The engine's end of the conversation, moved to numbers that a candidate does not guess.
class Channel {
public:
  Channel() : requests_(move_away(3)), answers_(move_away(4)) {}

  bool usable() const { return requests_ >= 0 && answers_ >= 0; }

  /// nullopt once the engine is gone.
  std::optional<json> receive() {
    for (auto end = buffer_.find('\n'); end == std::string::npos; end = buffer_.find('\n')) {
      char chunk[4096];
      const ssize_t got = read(requests_, chunk, sizeof chunk);
      if (got > 0) {
        buffer_.append(chunk, static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        return std::nullopt;
      }
    }
    const std::size_t length = buffer_.find('\n') + 1;
    json message = json::parse(buffer_.substr(0, length));
    buffer_.erase(0, length);
    token_ = message.at("token");
    return message;
  }

  /// The answer to what was received last. A copy of this process that a candidate has made by
  /// fork() has none to give.
  bool send(json message) const {
    if (getpid() != owner_) {
      std::_Exit(1);
    }
    message["token"] = token_;
    // A candidate's words may be in it, and need not be UTF-8.
    const std::string line = message.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t sent = write(answers_, line.data() + done, line.size() - done);
      if (sent > 0) {
        done += static_cast<std::size_t>(sent);
      } else if (errno != EINTR) {
        return false;
      }
    }
    return true;
  }

private:
  static int move_away(int fd) {
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 200);
    close(fd);
    return moved;
  }

  pid_t owner_ = getpid();
  int requests_;
  int answers_;
  std::string buffer_;
  std::string token_;
};

std::unique_ptr<Device> make_device(const PrepareRequest& request) {
  return request.backend == Backend::Cuda ? make_cuda_device(request) : make_cpu_device(request);
}

/// Without destroying anything: what belongs to LibTorch, CUDA and candidates might hang.
[[noreturn]] void leave(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

/// What the worker does with each kind of request; returns whether it may go on.
class Session {
public:
  explicit Session(Channel& channel) : channel_(channel) {}

  bool operator()(const PrepareRequest& request) {
    try {
      if (!device_) {
        device_ = make_device(request);
      }
      return channel_.send(device_->prepare(request));
    } catch (const NoDevice& error) {
      PrepareResponse response;
      response.torch_version = TORCH_VERSION;
      response.error = error.what();
      channel_.send(response);
      return false;
    }
  }

  bool operator()(const JudgeRequest& request) { return answer(device_->judge(request)); }
  bool operator()(const CompareRequest& request) { return answer(device_->compare(request)); }
  bool operator()(const VerifyRequest& request) { return answer(device_->verify(request)); }

private:
  template <typename Response> bool answer(const Response& response) {
    return channel_.send(response) && !response.leaving;
  }

  Channel& channel_;
  std::unique_ptr<Device> device_;
};

[[noreturn]] void serve(Channel& channel) {
  Session session(channel);
  while (const auto request = channel.receive()) {
    if (!std::visit(session, decode_request(*request))) {
      break;
    }
  }
  leave(0); // before the device is destroyed
}

/// A core of a process with a CUDA context takes seconds to write. Zero would still feed a handler.
void leave_no_core() {
  const rlimit one_byte{1, 1};
  setrlimit(RLIMIT_CORE, &one_byte);
}

} // namespace
} // namespace evo

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL); // also when something else than evo started it
  std::signal(SIGPIPE, SIG_IGN);
  evo::leave_no_core();
  evo::adopt_orphans();
  evo::Channel channel;
  if (!channel.usable()) {
    std::fputs("evo-worker is started by evo, which talks to it on descriptors 3 and 4\n", stderr);
    return 2;
  }
  const at::NoGradGuard no_gradients;
  evo::serve(channel);
}
