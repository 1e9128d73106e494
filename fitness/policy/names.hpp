// The names that the policy knows.
#pragma once

#include <string_view>

namespace evo::policy {

/// A function of the C library or of CUDA: what a file may neither define nor, the launchers' few
/// calls aside, use.
bool belongs_to_the_system(std::string_view function);

/// A call of the CUDA runtime that a launcher needs.
bool is_launcher_call(std::string_view function);

/// A compiler builtin that computes nothing and touches nothing.
bool is_harmless_builtin(std::string_view function);

/// A special register of PTX, without its %, that says where in the grid a thread is. Clocks and
/// multiprocessor numbers tell a kernel how it is being run.
bool is_coordinate_register(std::string_view name);

} // namespace evo::policy
