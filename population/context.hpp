// What a verdict holds for.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "fitness/problem.hpp"
#include "population/backend_info.hpp"

namespace evo {

/// Verdicts of one context are comparable; those of one subject are about the same operator on the
/// same card, so what was good for one is worth a try in another.
struct Context {
  nlohmann::json subject; // card, target and problem
  nlohmann::json terms;   // all else: toolkit, driver, flags, sizes, contents, level, version

  bool operator==(const Context&) const = default;
};

/// `contents`: the seed that inputs are drawn from. `sanitizer`: whether elites pass it.
Context context_of(const Problem& problem, const BackendInfo& backend, Level level,
                   std::uint64_t contents, bool sanitizer);

/// What differs in where and with what kernels run: "card NVIDIA H200 instead of NVIDIA A100,
/// driver ..."; empty: nothing.
std::string differences(const Context& now, const Context& before);

void to_json(nlohmann::json& json, const Context& context);
void from_json(const nlohmann::json& json, Context& context);

} // namespace evo
