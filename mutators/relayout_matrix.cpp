// Lays out anew a matrix that one launch leaves in the workspace for others.
//
//   before                                    after "gemm/folded transpose"
//   __global__ void fold(..., folded, d) {    __global__ void fold(..., folded, d) {
//     ...                                       ...
//     folded[row * d + col] = ...;              folded[col * d + row] = ...;
//   }                                         }
//   __global__ void gemm(W, X, Y, d) {        __global__ void gemm(W, X, Y, d) {
//     ...                                       ...
//       const int row = i / gemm_block_k;         const int k = i / gemm_block_m;
//       const int k = i % gemm_block_k;           const int row = i % gemm_block_m;
//       w[k][row] = ...                           w[k][row] = ...
//           ? W[(block_row + row) * d + k0 + k]       ? W[(k0 + k) * d + block_row + row]
//           : 0.0f;                                   : 0.0f;
//   fold<<<...>>>(..., folded, d);            fold<<<...>>>(..., folded, d);
//   gemm<<<...>>>(folded, X, Y, d);           gemm<<<...>>>(folded, X, Y, d);
//
// A loop that deals a tile out to threads takes it the other way round, so that neighbouring
// threads still read neighbours.
//
// Precondition: found by what the launches read and write. The matrix is square, as wide as its
// pitch, at the start of the workspace; one launch writes it and the others that touch it only read
// it; every kernel uses its pointer for elements row * pitch + column alone. Legal if both files
// compute the same polynomials of their inputs (analysis/meaning.hpp), which also shows that the
// bounds hold. What reads a row of it at once is not the same any more, and refuses.
//
// Expected gain: where the tile is transposed in shared memory its copy becomes a straight one, so
// that vectorise_access makes it 16 bytes wide and pipeline_copies sends it so. A thread that
// computes several rows stores neighbours.
#include <algorithm>
#include <array>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/RecursiveASTVisitor.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/dependence_graph.hpp"
#include "mutators/analysis/element_stores.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/meaning.hpp"
#include "mutators/deal.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::array<std::int64_t, 2> sizes{5, 12}; // to tell a square matrix by

/// What a kernel calls the matrix.
struct User {
  const clang::FunctionDecl* kernel = nullptr;
  const clang::ParmVarDecl* matrix = nullptr;

  bool operator==(const User&) const = default;
};

struct PrivateMatrix {
  std::size_t writer = 0; // a launch
  User written;
  std::vector<User> read; // in order of the launches, each kernel once
};

/// nullopt unless one launch writes what `base` points to and later ones only read it.
std::optional<PrivateMatrix> private_matrix(const DependenceGraph& graph,
                                            const clang::VarDecl& base) {
  std::optional<PrivateMatrix> found;
  for (std::size_t i = 0; i < graph.launches().size(); ++i) {
    const Uses& uses = graph.uses(i);
    const auto use = uses.find(&base);
    if (uses.contains(nullptr)) {
      return std::nullopt;
    }
    if (use == uses.end()) {
      continue;
    }
    const Launch& launch = graph.launches()[i];
    const User user{launch.kernel, parameter_for(graph, launch, &base)};
    if (user.matrix == nullptr || use->second.writes == found.has_value() ||
        use->second.writes == use->second.reads) {
      return std::nullopt;
    }
    if (!found) {
      found = PrivateMatrix{i, user, {}};
    } else if (std::ranges::find(found->read, user) == found->read.end()) {
      found->read.push_back(user);
    }
  }
  return found && !found->read.empty() ? found : std::nullopt;
}

/// Whether the writer stores as many rows as a row has room for.
bool is_square(const Kernel& kernel, const PrivateMatrix& matrix) {
  const auto dims = find_dims(kernel);
  const auto accesses = element_accesses(kernel, *matrix.written.kernel, *matrix.written.matrix);
  return dims && accesses && std::ranges::all_of(sizes, [&](std::int64_t size) {
           const auto launches = launches_at(kernel, *dims, size);
           const auto stored =
               matrix.writer < launches.size()
                   ? stored_elements(kernel, launches[matrix.writer], accesses->stores)
                   : std::nullopt;
           return stored && !stored->elements.empty() &&
                  stored->elements.back().row + 1 == stored->width;
         });
}

/// The places array[index] of an array, and whether it is used in other ways.
class Elements : public clang::RecursiveASTVisitor<Elements> {
public:
  explicit Elements(const clang::ParmVarDecl& array) : array_(array) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* use) {
    uses_ += use->getDecl() == &array_ ? 1 : 0;
    return true;
  }
  bool VisitArraySubscriptExpr(clang::ArraySubscriptExpr* element) {
    const auto* base = dyn_cast<clang::DeclRefExpr>(element->getBase()->IgnoreParenImpCasts());
    if (base != nullptr && base->getDecl() == &array_) {
      list.push_back(element);
    }
    return true;
  }
  bool are_all_uses() const { return uses_ == list.size(); }

  std::vector<const clang::ArraySubscriptExpr*> list;

private:
  const clang::ParmVarDecl& array_;
  std::size_t uses_ = 0;
};

/// The rewrite of one kernel.
class Transposition {
public:
  Transposition(const Kernel& kernel, const User& user) : kernel_(kernel), user_(user) {}

  std::optional<std::vector<Edit>> edits() {
    Elements elements(*user_.matrix);
    elements.TraverseStmt(user_.kernel->getBody());
    if (!elements.are_all_uses() ||
        !std::ranges::all_of(elements.list, [&](const clang::ArraySubscriptExpr* element) {
          return transpose(*element);
        })) {
      return std::nullopt;
    }
    const std::vector<Deal> turned = deals_to_swap(elements.list);
    for (const Deal& deal : turned) {
      const auto more = swapped(kernel_, deal);
      if (!more) {
        return std::nullopt;
      }
      edits_.insert(edits_.end(), more->begin(), more->end());
    }
    return std::move(edits_);
  }

private:
  bool transpose(const clang::ArraySubscriptExpr& element) {
    const auto index = element_index(kernel_, *element.getIdx());
    const auto span = span_of(kernel_, element.getIdx()->getSourceRange());
    const auto row = index ? operand(kernel_, *index->row, Binding::Sum) : std::nullopt;
    const auto column = index ? factor(index->column) : std::nullopt;
    if (!span || !row || !column) {
      return false;
    }
    edits_.push_back({span->begin, span->length(),
                      *column + " * " + index->width->getNameAsString() + " + " + *row});
    return true;
  }

  /// A sum where a product needs it.
  std::optional<std::string> factor(const std::vector<const clang::Expr*>& summands) const {
    if (summands.size() == 1) {
      return operand(kernel_, *summands.front(), Binding::Product);
    }
    std::string sum;
    for (const clang::Expr* summand : summands) {
      const auto text = operand(kernel_, *summand, Binding::Sum);
      if (!text) {
        return std::nullopt;
      }
      sum += (sum.empty() ? "" : " + ") + *text;
    }
    return "(" + sum + ")";
  }

  /// Of the loops in which neighbouring numbers are neighbours in a row, and of those that take on
  /// what such a loop has put into registers.
  std::vector<Deal> deals_to_swap(const std::vector<const clang::ArraySubscriptExpr*>& elements) {
    std::vector<Deal> along_rows;
    std::vector<Deal> others;
    loops_ = device_loops(kernel_);
    for (const DeviceLoop& loop : loops_) {
      const auto deal = loop.function == user_.kernel ? deal_of(kernel_, loop) : std::nullopt;
      if (deal) {
        (goes_along_rows(*deal, elements) ? along_rows : others).push_back(*deal);
      }
    }
    std::vector<Deal> result = along_rows;
    std::ranges::copy_if(others, std::back_inserter(result), [&](const Deal& other) {
      return std::ranges::any_of(along_rows, [&](const Deal& deal) {
        return same_deal(kernel_, deal, other) && takes_on(deal, other);
      });
    });
    return result;
  }

  bool goes_along_rows(const Deal& deal,
                       const std::vector<const clang::ArraySubscriptExpr*>& elements) const {
    return std::ranges::any_of(elements, [&](const clang::ArraySubscriptExpr* element) {
      const auto index = element_index(kernel_, *element->getIdx());
      return index && mentions(*index->row, *deal.slow) &&
             std::ranges::any_of(index->column, [&](const clang::Expr* summand) {
               return mentions(*summand, *deal.fast);
             });
    });
  }

  static bool takes_on(const Deal& fetch, const Deal& store) {
    const Accesses accesses = accesses_of(*fetch.loop->counted.loop->getBody());
    return std::ranges::any_of(accesses.list, [&](const MemoryAccess& access) {
      return access.writes && access.memory.space == Space::Register &&
             access.memory.variable != nullptr &&
             access.memory.variable->getType()->isArrayType() &&
             mentions(*store.loop->counted.loop->getBody(), *access.memory.variable);
    });
  }

  const Kernel& kernel_;
  const User& user_;
  std::vector<DeviceLoop> loops_;
  std::vector<Edit> edits_;
};

bool keeps_meaning(const Kernel& kernel, const std::vector<Edit>& edits) {
  const auto after = Kernel::parse(apply_edits(kernel.source(), edits), kernel.target());
  const auto* parsed = std::get_if<Kernel>(&after);
  return parsed != nullptr && same_meaning(kernel, *parsed);
}

std::optional<std::vector<Edit>> transposed(const Kernel& kernel, const PrivateMatrix& matrix) {
  std::vector<User> users = matrix.read;
  users.insert(users.begin(), matrix.written);
  std::vector<Edit> edits;
  for (const User& user : users) {
    const auto more = Transposition(kernel, user).edits();
    if (!more) {
      return std::nullopt;
    }
    edits.insert(edits.end(), more->begin(), more->end());
  }
  sort_edits(edits);
  return keeps_meaning(kernel, edits) ? std::optional(std::move(edits)) : std::nullopt;
}

class RelayoutMatrix : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "relayout_matrix",
        .summary = "transposes a matrix that one kernel leaves in the workspace for others: "
                   "straight, wide copies into a transposed tile",
        .before = "folded[row * d + col] = ...\n... w[k][row] = folded[(block_row + row) * d + k0 "
                  "+ k] ...",
        .after = "folded[col * d + row] = ...\n... w[k][row] = folded[(k0 + k) * d + block_row + "
                 "row] ...",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const auto graph = DependenceGraph::of(kernel);
    for (const clang::ParmVarDecl* base :
         graph ? graph->entry().parameters() : llvm::ArrayRef<clang::ParmVarDecl*>{}) {
      const auto matrix =
          base->getType()->isVoidPointerType() ? private_matrix(*graph, *base) : std::nullopt;
      auto edits =
          matrix && is_square(kernel, *matrix) ? transposed(kernel, *matrix) : std::nullopt;
      if (edits) {
        result.push_back({matrix->read.front().kernel->getNameAsString() + "/" +
                              matrix->written.matrix->getNameAsString() + " transpose",
                          std::move(*edits)});
      }
    }
    return result;
  }
};

} // namespace

const Mutator& relayout_matrix() {
  static const RelayoutMatrix mutator;
  return mutator;
}

} // namespace evo
