#include "mutators/filled_in.hpp"

#include <algorithm>

namespace evo {

std::string filled_in(std::string_view form, const Texts& texts) {
  std::string result;
  while (!form.empty()) {
    const std::size_t name = form.find('$');
    result += form.substr(0, name);
    if (name == std::string_view::npos) {
      break;
    }
    const std::size_t end = form.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", name + 1);
    result += texts.at(std::string(form.substr(name + 1, end - name - 1)));
    form.remove_prefix(std::min(end, form.size()));
  }
  return result;
}

} // namespace evo
