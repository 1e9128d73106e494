// The command line.
#pragma once

namespace evo {

/// Parses and runs it; the exit code: 0, 1 when the candidate failed, 2 for bad input (one sentence
/// on stderr), 3 for a fault of evo or of the system.
int main_of(int argc, char** argv);

} // namespace evo
