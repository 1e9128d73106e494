// The run as a list of events, one JSON object per line. Without any wall-clock time: the same seed
// gives the same log on the model backend, whatever the number of threads. The times stand in a
// file of their own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "population/search.hpp"

namespace evo {

/// In slot order per individual: proposed, dropped gene, known if the verdict is an earlier run's,
/// then duplicate, or built and judged, or failed, then verified if it was, and elite; at the end
/// survivor per island, exported and generation.
std::vector<nlohmann::json> events(const Generation& generation);

/// One object per individual, with its times in seconds, and one for the generation.
std::vector<nlohmann::json> timings(const Generation& generation, double wall_s,
                                    double gpu_busy_share);

/// In one line, with a mark for what a candidate said that is no UTF-8.
std::string to_line(const nlohmann::json& object);

/// One object per line.
std::string json_lines(const std::vector<nlohmann::json>& objects);

/// How often each verdict was given to `individuals`, by its text.
nlohmann::json verdict_counts(const std::vector<Individual>& individuals);

} // namespace evo
