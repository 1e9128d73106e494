// A reduction loop whose tiles get several stages: what the rewrites of that family share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mutators/analysis/single_buffered.hpp"
#include "mutators/names.hpp"
#include "mutators/render.hpp"

namespace evo {

bool defines_variables(const std::vector<const StagePart*>& parts);
std::string in_braces(const std::string& text, bool needed);

/// Names, uses and text of one loop. Where something cannot be edited, what is printed of it is
/// empty and editable() false from then on. All that it is made from must outlive it.
class BufferedLoop {
public:
  BufferedLoop(const Kernel& kernel, const Stages& stages, const SingleBuffered& before);

  bool editable() const { return editable_; }
  const CountedLoop& counted() const { return before_.loop; }
  /// Whether shared memory may be used before or after the loop, or again by its next run.
  bool is_shared_memory_used_around() const;

  /// The loop's own text, where code can be put before it and its pragmas, before the kernel, and
  /// before what declares the tiles; nullopt where the loop cannot be edited, or where a tile is
  /// used elsewhere than in the loop and behind it in the same braces.
  struct Places {
    Span loop;
    unsigned before_loop = 0;
    unsigned before_kernel = 0;
    unsigned before_tiles = 0;
  };
  std::optional<Places> places();
  /// Whether places() has found uses behind the loop. They are of stage 0 from then on, which is
  /// not what the loop left: whoever stages it proves that this does not matter.
  bool are_tiles_used_behind() const { return !uses_behind_.empty(); }

  // Names that the file does not use, and where more come from.
  Names names;
  std::string stage_count; // "gemm_stages"
  std::string stage;       // that is computed on
  std::string next_stage;  // that is loaded
  std::string counter;     // of the loop, as it is
  std::string next_counter;

  /// Makes code use one stage's tiles, and another counter.
  std::vector<Edit> on_stage(const std::string& stage, const std::string& counter) const;
  /// A leading [stage_count] for every tile, and stage 0 for its uses behind the loop.
  std::vector<Edit> stage_dimensions();
  /// What wide accesses rely on, should the tiles change.
  std::string alignment_assertions() const;
  /// The load parts without tiles that the computation needs too, say a bound for both; nullopt
  /// when it needs one that fills a tile.
  std::optional<std::vector<const StagePart*>> definitions_for_compute() const;
  bool uses_counter(const std::vector<const StagePart*>& parts) const;

  std::string print(const std::vector<const StagePart*>& parts, const std::vector<Edit>& edits);
  std::string text(const clang::Stmt* node, const std::vector<Edit>& edits = {});
  std::string operand(const clang::Expr* expr, Binding binding);
  std::string step(Binding binding);
  std::string counter_type() const;
  /// The counter's value in the first iteration, in the counter's type.
  std::string first_counter();

private:
  bool find_uses(Span loop);
  std::optional<unsigned> offset_before_loop() const;

  const Kernel& kernel_;
  const Stages& stages_;
  const SingleBuffered& before_;
  std::vector<Span> tile_uses_;
  std::vector<Span> uses_behind_;
  std::vector<Span> counter_uses_;
  bool editable_ = true;
};

} // namespace evo
