#include "population/files.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <ios>
#include <sstream>
#include <system_error>

#include <fmt/core.h>
#include <unistd.h>

#include "fitness/problem.hpp"

namespace evo {
namespace {

[[noreturn]] void cannot(std::string_view what, const std::filesystem::path& file,
                         std::string_view reason) {
  throw InputError(fmt::format("cannot {} {}: {}", what, file.string(), reason));
}

void put(const std::filesystem::path& file, std::string_view text, std::ios::openmode mode) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary | mode);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) {
    cannot("write", file, std::strerror(errno));
  }
}

} // namespace

std::string read_text(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream || std::filesystem::is_directory(file)) {
    cannot("read", file, errno != 0 ? std::strerror(errno) : "it is not a file");
  }
  return text.str();
}

void write_text(const std::filesystem::path& file, std::string_view text) {
  put(file, text, std::ios::trunc);
}

void append_text(const std::filesystem::path& file, std::string_view text) {
  put(file, text, std::ios::app);
}

void replace_link(const std::filesystem::path& link, const std::filesystem::path& target) {
  std::filesystem::path draft = link;
  draft += fmt::format(".{}", getpid());
  try {
    std::filesystem::create_symlink(target, draft);
    std::filesystem::rename(draft, link);
  } catch (const std::filesystem::filesystem_error& error) {
    cannot("write", link, error.code().message());
  }
}

} // namespace evo
