// run.json: what a run was asked for, in full, so that it can go on from its folder alone.
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "population/backend_info.hpp"
#include "population/options.hpp"
#include "population/snapshot.hpp"

namespace evo {

struct RunRecord {
  Options options;
  Problem problem;
  std::vector<Founder> founders;
  bool begun = false; // the founders are chosen
};

nlohmann::json to_json(const RunRecord& record, const BackendInfo& backend);

/// InputError for a folder whose run.json says too little, as of an earlier version.
RunRecord load_record(const std::filesystem::path& run_folder);

/// Copies the seeds and the incumbent, which load_record finds again.
void keep_inputs(const Snapshot& snapshot, const RunRecord& record);

} // namespace evo
