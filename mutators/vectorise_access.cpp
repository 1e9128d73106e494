// Moves two or four consecutive elements by one access: tiles into shared memory, fragments into
// registers, results into global memory.
//
//   before                                after "gemm/x fragment vector 4"
//   for (j = 0; j < N; ++j) {             for (j = 0; j < N; j += 4) {
//     x_fragment[j] = x[k][col + j];        const float4 v =
//   }                                           *reinterpret_cast<const float4 *>(&x[k][col + j]);
//                                           x_fragment[j] = v.x; ...
//                                         }
//   before                                after "gemm/x copy vector 4"
//   for (i = threadIdx.x; i < K * N;      for (i = threadIdx.x * 4; i < K * N;
//        i += threads) {                       i += threads * 4) {
//     const int k = i / N;                  const int k = i / N;
//     const int col = i % N;                const int col = i % N;
//     x[k][col] = col < d                   *reinterpret_cast<float4 *>(&x[k][col]) =
//                     ? X[k * d + col]          col + 3 < d && X + k * d + col is aligned
//                     : 0.0f;                       ? *reinterpret_cast<const float4 *>(...)
//   }                                               : make_float4(each on its own);
//                                         }
//
// and "gemm/Y store vector 4" likewise, where values that take more than registers to compute are
// computed in a loop before. What is not in whole, aligned groups in global memory (the edge of a
// matrix, rows of a width that is no multiple) takes the elements one by one.
//
// Precondition: a loop that moves one element per step (analysis/copy_loop.hpp), whose groups are
// consecutive in memory for every thread, block and size (analysis/affine_view.hpp) and aligned
// where that memory is shared, which gets an alignas. A loop whose steps are dealt out to threads
// fills a tile between barriers, or stores one that is complete where nothing else stores, and
// deals out every step once; so do both halves of a copy through registers, which change together.
// Nothing is computed differently, so results keep every bit.
//
// Expected gain: a quarter of the load and store instructions, and of the shared memory's bandwidth
// where lanes read the same row.
#include <algorithm>
#include <array>
#include <map>

#include <clang/AST/Decl.h>

#include "mutators/analysis/copy_loop.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/vector_copy.hpp"

namespace evo {
namespace {

constexpr std::array widths{4, 2};

std::string name_of(const Memory& memory) {
  return memory.member != nullptr ? memory.member->getNameAsString()
                                  : memory.variable->getNameAsString();
}

/// "x fragment": what the loop moves, and where.
std::string name_of(const CopyLoop& copy, const std::string& ordinal) {
  switch (copy.to.space) {
  case Space::Register:
    return name_of(copy.from) + ordinal +
           (copy.from.space == Space::Shared ? " fragment" : " load");
  case Space::Shared:
    return name_of(copy.to) + ordinal + " copy";
  default:
    return name_of(copy.to) + ordinal + " store";
  }
}

class VectoriseAccess : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "vectorise_access",
        .summary = "moves 2 or 4 consecutive elements by one access: fewer "
                   "instructions for the "
                   "same bytes",
        .before = "for (int j = 0; j < 8; ++j) { a[j] = tile[k][col + j]; }",
        .after = "for (int j = 0; j < 8; j += 4) {\n"
                 "  const float4 v = *reinterpret_cast<const float4 *>(&tile[k][col "
                 "+ j]);\n"
                 "  a[j] = v.x; a[j + 1] = v.y; a[j + 2] = v.z; a[j + 3] = v.w;\n"
                 "}",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<CopyLoop> copies;
    for (const DeviceLoop& loop : device_loops(kernel)) {
      if (auto copy = copy_loop(loop)) {
        copies.push_back(std::move(*copy));
      }
    }
    std::vector<Rewrite> result;
    std::map<std::string, int> named;
    for (const CopyLoop& copy : copies) {
      const CopyLoop* store = second_half(copy, copies);
      std::optional<std::string> name;
      for (const int width : widths) {
        auto edits = store == nullptr ? vectorised(kernel, copy, width)
                                      : vectorised(kernel, copy, *store, width);
        if (!edits) {
          continue;
        }
        const std::string site = copy.loop.function->getNameAsString() + "/";
        if (!name) {
          const CopyLoop& moves = store == nullptr ? copy : *store;
          const int number = ++named[site + name_of(moves, "")];
          name = name_of(moves, number == 1 ? "" : "#" + std::to_string(number));
        }
        result.push_back({site + *name + " vector " + std::to_string(width), std::move(*edits)});
      }
    }
    return result;
  }

private:
  /// The loop that puts into shared memory what `fetch` has taken into registers.
  static const CopyLoop* second_half(const CopyLoop& fetch, const std::vector<CopyLoop>& copies) {
    if (fetch.to.space != Space::Register || fetch.from.space != Space::Global) {
      return nullptr;
    }
    const auto store = std::ranges::find_if(copies, [&](const CopyLoop& copy) {
      return copy.to.space == Space::Shared && copy.from == fetch.to;
    });
    return store == copies.end() ? nullptr : &*store;
  }
};

} // namespace

const Mutator& vectorise_access() {
  static const VectoriseAccess mutator;
  return mutator;
}

} // namespace evo
