#include "fitness/artifact_cache.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include <nlohmann/json.hpp>

#include "mutators/rewrite.hpp"

namespace evo {
namespace {

using nlohmann::json;

json to_record(const Artifact& artifact) {
  json record{{"library", artifact.library.filename().string()},
              {"cubin_digest", artifact.cubin_digest},
              {"kernels", json::object()}};
  for (const auto& [name, kernel] : artifact.kernels) {
    record["kernels"][name] = {kernel.registers, kernel.shared_bytes, kernel.spill_bytes,
                               to_record(kernel.products)};
  }
  return record;
}

Artifact from_record(const json& record, const std::filesystem::path& folder) {
  Artifact artifact;
  artifact.library = folder / record.at("library").get<std::string>();
  artifact.cubin_digest = record.at("cubin_digest").get<std::string>();
  for (const auto& [name, kernel] : record.at("kernels").items()) {
    artifact.kernels[name] = {kernel.at(0).get<int>(), kernel.at(1).get<int>(),
                              kernel.at(2).get<int>(), products_from(kernel.at(3))};
  }
  return artifact;
}

/// Whoever makes room removes first what was not used for long.
void mark_as_used(const std::filesystem::path& file) {
  std::error_code ignored;
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now(), ignored);
}

} // namespace

std::optional<Artifact> ArtifactCache::find(const std::string& key) const {
  try {
    const json record = json::parse(read_file(folder_ / (key + ".json")));
    Artifact artifact = from_record(record, folder_);
    const bool whole = artifact.library.stem() == digest(read_file(artifact.library));
    mark_as_used(artifact.library);
    mark_as_used(folder_ / (key + ".json"));
    return whole ? std::optional(std::move(artifact)) : std::nullopt;
  } catch (const json::exception&) { // absent or damaged
    return std::nullopt;
  }
}

Artifact ArtifactCache::store(const std::string& key, Artifact artifact) const {
  const std::filesystem::path built = artifact.library;
  artifact.library = folder_ / (digest(read_file(built)) + ".so");
  std::filesystem::rename(built, artifact.library);
  const std::filesystem::path record = built.parent_path() / "record.json";
  write_file(record, to_record(artifact).dump());
  std::filesystem::rename(record, folder_ / (key + ".json"));
  return artifact;
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_file(const std::filesystem::path& file, const std::string& text) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary);
  stream << text << std::flush;
  if (!stream) {
    throw std::system_error(errno, std::generic_category(), "cannot write " + file.string());
  }
}

} // namespace evo
