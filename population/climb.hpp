// A trail step by step: what each of its rewrites brings, on the way up and when it alone is left
// out.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "population/evaluator.hpp"

namespace evo {

struct Problem;

/// One kernel of a table.
struct Rung {
  std::string label; // the gene that leads to it, or that it does without; the seed's file name
  Genome genome;
  std::vector<Gene> dropped = {}; // what does not apply without the gene that is left out
  Fitness fitness = {};
};

/// The seed and what it is after each gene. InputError names the first gene that does not apply.
std::vector<Rung> climb(const Genome& seed, const std::vector<Gene>& trail, const Dialect& dialect);

/// The whole trail and then the trail without each of its genes, and without those that need it.
/// InputError as climb.
std::vector<Rung> ablation(const Genome& seed, const std::vector<Gene>& trail,
                           const Dialect& dialect);

/// Builds all side by side and judges one after the other, each as if it were the first.
void judge(std::vector<Rung>& rungs, FitnessEvaluator& evaluator, int jobs, std::stop_token stop);

/// Markdown, a line per rung: milliseconds and useful TFLOP/s at the middle one of the sizes, the
/// speed-up over all of them, and that speed-up over the one of the line before (climb) or of the
/// first line (ablation).
std::string climb_table(const std::vector<Rung>& rungs, const Problem& problem);
std::string ablation_table(const std::vector<Rung>& rungs, const Problem& problem);

} // namespace evo
