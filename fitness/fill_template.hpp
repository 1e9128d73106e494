// Text templates with @NAME@ in them.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace evo {

/// The template with each @NAME@ replaced by its value, once: values are not searched again. Throws
/// std::out_of_range for a name without a value.
inline std::string fill_template(std::string_view text,
                                 const std::map<std::string_view, std::string>& values) {
  std::string result;
  while (!text.empty()) {
    const std::size_t open = text.find('@');
    const std::size_t close = open == text.npos ? text.npos : text.find('@', open + 1);
    if (close == text.npos) {
      break;
    }
    result += text.substr(0, open);
    result += values.at(text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
  return result.append(text);
}

} // namespace evo
