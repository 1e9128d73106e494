// Text from parts, for the worker, which is built where fmt need not be.
#pragma once

#include <sstream>
#include <string>

namespace evo {

template <typename... Parts> std::string concat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

} // namespace evo
