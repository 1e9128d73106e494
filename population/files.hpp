// Whole files in and out.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace evo {

/// InputError when it cannot be read.
std::string read_text(const std::filesystem::path& file);

/// Creates or replaces. InputError that names the file and the reason: the disk is full, say.
void write_text(const std::filesystem::path& file, std::string_view text);

/// Replaces: a reader, or a process that begins after this one was killed, sees the old file or the
/// new one. InputError as write_text.
void replace_text(const std::filesystem::path& file, const std::string& text);

/// Adds to the end, and returns when the system has it. InputError as write_text.
void append_text(const std::filesystem::path& file, std::string_view text);

/// Takes the end of a text off that is no whole line, because its writer was killed. Whether there
/// was one. InputError as write_text.
bool drop_cut_line(const std::filesystem::path& file);

/// Makes `link` point to `target`; a reader sees the old target or the new one. InputError as
/// write_text.
void replace_link(const std::filesystem::path& link, const std::filesystem::path& target);

} // namespace evo
