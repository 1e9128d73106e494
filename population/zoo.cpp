#include "population/zoo.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fitness/problem.hpp"
#include "population/files.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view comment = "//";
constexpr std::string_view blank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(blank);
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(blank) + 1 - begin);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

/// Takes the first line off `text`.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw InputError(fmt::format("the first line of {}.cu {}; write // expect: VERDICT; behind it: "
                               "VERDICT; model: VERDICT, the last two where they apply",
                               name, what));
}

Verdicts parse_verdicts(const std::string& name, std::string_view text) {
  Verdicts verdicts;
  for (const std::string_view word : split(text, '|')) {
    const auto verdict = verdict_from(word);
    if (!verdict) {
      refuse(name, fmt::format("names a verdict \"{}\", which there is not", word));
    }
    verdicts.push_back(*verdict);
  }
  return verdicts;
}

void parse_expectations(Specimen& specimen, std::string_view line) {
  if (!line.starts_with(comment)) {
    refuse(specimen.name, "is no comment that says what to expect");
  }
  for (const std::string_view part : split(line.substr(comment.size()), ';')) {
    const std::size_t colon = std::min(part.find(':'), part.size());
    const std::string_view key = part.substr(0, colon);
    Verdicts* const place = key == "expect"      ? &specimen.expected
                            : key == "behind it" ? &specimen.behind_policy
                            : key == "model"     ? &specimen.on_model
                                                 : nullptr;
    if (place == nullptr || colon == part.size()) {
      refuse(specimen.name, fmt::format("has \"{}\", which is no expectation", part));
    }
    if (!place->empty()) {
      refuse(specimen.name, fmt::format("says \"{}\" twice", key));
    }
    *place = parse_verdicts(specimen.name, part.substr(colon + 1));
  }
  if (specimen.expected.empty()) {
    refuse(specimen.name, "does not say what to expect on a card");
  }
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".cu") {
      names.push_back(entry.path().stem().string());
    }
  }
  if (names.empty()) {
    throw InputError(
        fmt::format("there are no .cu files in {}; name the folder of tests/adversarial "
                    "with --zoo",
                    folder.string()));
  }
  std::ranges::sort(names);
  return names;
}

} // namespace

bool allows(const Verdicts& expected, Verdict verdict) {
  return std::ranges::find(expected, verdict) != expected.end();
}

std::string to_string(const Verdicts& verdicts) {
  std::vector<std::string_view> words;
  std::ranges::transform(verdicts, std::back_inserter(words),
                         [](Verdict verdict) { return to_string(verdict); });
  return fmt::format("{}", fmt::join(words, " | "));
}

Specimen parse_specimen(const std::string& name, std::string_view text) {
  Specimen specimen{
      .name = name, .source = {}, .expected = {}, .behind_policy = {}, .on_model = {}};
  parse_expectations(specimen, take_line(text));
  while (text.starts_with(comment)) {
    take_line(text);
  }
  specimen.source = text;
  return specimen;
}

std::vector<Specimen> load_zoo(const fs::path& folder, const std::vector<std::string>& only) {
  std::vector<std::string> names = names_in(folder);
  for (const std::string& name : only) {
    if (std::ranges::find(names, name) == names.end()) {
      throw InputError(fmt::format("there is no {}.cu in {}; --only takes {}", name,
                                   folder.string(), fmt::join(names, ", ")));
    }
  }
  std::vector<Specimen> zoo;
  for (const std::string& name : only.empty() ? names : only) {
    zoo.push_back(parse_specimen(name, read_text(folder / (name + ".cu"))));
  }
  return zoo;
}

} // namespace evo
