// Where the seeds are that come with evo.
#pragma once

#include <filesystem>

namespace evo {

/// The folder that holds seeds/: EVO_DATA, or the source tree around a build folder, or an
/// installation's share/evo, each found from the executable. InputError when none of them does.
std::filesystem::path data_folder();

} // namespace evo
