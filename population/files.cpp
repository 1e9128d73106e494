#include "population/files.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <ios>
#include <sstream>
#include <system_error>

#include <fmt/core.h>
#include <unistd.h>

#include "fitness/export.hpp"
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

void replace_text(const std::filesystem::path& file, const std::string& text) {
  try {
    replace_file(file, text);
  } catch (const std::system_error& error) {
    cannot("write", file, error.code().message());
  }
}

void append_text(const std::filesystem::path& file, std::string_view text) {
  put(file, text, std::ios::app);
}

bool drop_cut_line(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file)) {
    return false;
  }
  const std::string text = read_text(file);
  const std::size_t whole = text.rfind('\n') + 1; // 0 without one
  if (whole == text.size()) {
    return false;
  }
  std::error_code error;
  std::filesystem::resize_file(file, whole, error);
  if (error) {
    cannot("write", file, error.message());
  }
  return true;
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
