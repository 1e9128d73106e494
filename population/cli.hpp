// The command line.
#pragma once

namespace evo {

/// Parses and runs it; the exit code: 0, 1 when the candidate failed, 2 for bad input or a
/// system that refuses (one sentence on stderr), 3 for a fault of evo.
int main_of(int argc, char** argv);

} // namespace evo
