#include "population/context.hpp"

#include <fmt/core.h>

#include "fitness/protocol.hpp"
#include "mutators/rewrite.hpp"

namespace evo {

Context context_of(const Problem& problem, const BackendInfo& backend, Level level,
                   std::uint64_t contents, bool sanitizer) {
  nlohmann::json whole(problem);
  whole.erase("folder"); // where it lies does not matter
  whole.erase("seeds");
  return {.subject = {{"card", backend.card},
                      {"target", backend.target.arch},
                      {"measured", backend.measured()},
                      {"problem", problem.name}},
          .terms = {{"toolkit", backend.toolkit},
                    {"driver", backend.driver},
                    {"build", backend.build_line},
                    {"reference_precision", backend.reference_precision},
                    {"problem", digest(whole.dump())},
                    {"sizes", problem.sizes},
                    {"contents", contents},
                    {"level", to_string(level)},
                    {"sanitizer", sanitizer},
                    {"judging", judging_version}}};
}

std::string differences(const Context& now, const Context& before) {
  std::string text;
  const auto compare = [&](const char* name, const nlohmann::json& a, const nlohmann::json& b) {
    const auto said = [&](const nlohmann::json& object) {
      const auto value = object.value(name, nlohmann::json());
      return value.is_string() ? value.get<std::string>() : value.dump();
    };
    if (said(a) != said(b)) {
      text +=
          fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", name, said(a), said(b));
    }
  };
  for (const char* name : {"card", "target", "measured"}) {
    compare(name, now.subject, before.subject);
  }
  for (const auto& [name, value] : now.terms.items()) {
    compare(name.c_str(), now.terms, before.terms);
  }
  return text;
}

void to_json(nlohmann::json& json, const Context& context) {
  json = {{"subject", context.subject}, {"terms", context.terms}};
}

void from_json(const nlohmann::json& json, Context& context) {
  json.at("subject").get_to(context.subject);
  json.at("terms").get_to(context.terms);
}

} // namespace evo
