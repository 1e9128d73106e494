// Where the worker runs candidates.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "fitness/protocol.hpp"

namespace evo {

class Device {
public:
  virtual ~Device() = default;

  /// Makes inputs and references of the request's sizes; its reference times are taken as they are,
  /// missing ones measured. What it found, times in the order of the sizes. Throws as the makers.
  virtual PrepareResponse prepare(const PrepareRequest& request) = 0;
  virtual JudgeResponse judge(const JudgeRequest& request) = 0;
  virtual CompareResponse compare(const CompareRequest& request) = 0;
  virtual VerifyResponse verify(const VerifyRequest& request) = 0;
};

/// Thrown by the makers, which look at all but the sizes of a request: the backend cannot be used;
/// what() is one sentence.
class NoDevice : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

std::unique_ptr<Device> make_cuda_device(const PrepareRequest& request);
std::unique_ptr<Device> make_cpu_device(const PrepareRequest& request);

/// Thrown where a candidate is found out, caught at the end of Device::judge.
struct CandidateFailure {
  Verdict verdict;
  std::string detail;
};

} // namespace evo
