// Text with gaps, for what a rewrite prints.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace evo {

using Texts = std::map<std::string, std::string, std::less<>>;

/// `form` with each $name, of lower-case letters and underscores, replaced by texts.at(name).
std::string filled_in(std::string_view form, const Texts& texts);

} // namespace evo
