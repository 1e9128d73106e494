// Thorough checking of a candidate on the card: what the few checked calls of a judgement miss.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <vector>

#include "fitness/checked_run.hpp"
#include "fitness/protocol.hpp"
#include "fitness/truth.hpp"

namespace evo {

class Verifier {
public:
  /// The oracle must outlive it.
  explicit Verifier(const Oracle& oracle) : oracle_(oracle) {}

  /// Each case twice, between buffers that change places; then calls on small contents, as many as
  /// are left of the request's. CandidateFailure for anything but a case that fails.
  Verification verify(const Candidate& candidate, const VerifyRequest& request);

  /// Nobody has written into what it keeps.
  bool intact() const;

private:
  /// Which contents: they are drawn again whenever they are needed.
  struct Place {
    std::size_t index = 0; // of the case
    int size = 0;
    int draw = 0;

    auto operator<=>(const Place&) const = default;
  };
  struct Kept {
    std::shared_ptr<const Truth> truth;
    at::Tensor bits; // a sum over them, on the CPU
  };
  struct Sample {
    Place place;
    Tensors inputs;
    at::Tensor accepted; // the candidate's first right output
  };

  CaseFigures run_case(const Candidate& candidate, const Place& place, bool binding);
  void repeat(const Candidate& candidate, int calls);
  Outcome call(const Candidate& candidate, int size, const Tensors& inputs,
               const at::Tensor& before);
  std::shared_ptr<const Truth> truth(const Place& place, const Tensors& inputs);
  std::vector<Sample> samples() const;
  [[noreturn]] void refuse_second(const Place& place, const std::string& fault) const;

  const Oracle& oracle_;
  std::map<Place, Kept> kept_;
  std::int64_t kept_bytes_ = 0;
  std::uint64_t calls_ = 0; // of all candidates: no two have the same pointers
};

} // namespace evo
