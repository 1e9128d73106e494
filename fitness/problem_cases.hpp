// The part of a problem.toml that says what tensors hold: as they are timed, and case by case.
#pragma once

#include "fitness/problem_table.hpp"

namespace evo {

/// Every name must be a dim of the problem.
void check_dims(const Table& table, std::string_view key, const Names& names,
                const Problem& problem);

/// distribution, scale, fan_in and modifiers, into `tensor`. What is not named stays as it is; but
/// a distribution that is named starts afresh.
void read_contents(const Table& table, const Problem& problem, TensorSpec& tensor);

/// "harness" for the inputs as they stand, then [[cases]]. After the inputs.
void read_cases(const Table& root, Problem& problem);

} // namespace evo
