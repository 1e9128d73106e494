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
// A loop that deals a tile out to threads, and names the tile's sides in its limit, takes it the
// other way round, so that neighbouring threads still read neighbours.
//
//   before                                    after "gemm/folded pitch 4"
//   folded[row * d + col] = ...;              folded[row * folded_pitch + col] = ...;
//   fold<<<...>>>(..., folded, d);            const int folded_pitch = (d + 3) / 4 * 4;
//   gemm<<<...>>>(folded, X, Y, d);           fold<<<...>>>(..., folded, d, folded_pitch);
//                                             gemm<<<...>>>(folded, X, Y, d, folded_pitch);
//
// and the workspace grows as much. Nothing reads or writes what lies between the rows.
//
// Precondition: found by what the launches read and write (analysis/private_matrix.hpp): a square
// matrix at the start of the workspace, which one launch writes and others read, by elements row *
// pitch + column alone. Legal if both files compute the same polynomials of their inputs
// (analysis/meaning.hpp), which also shows that the bounds hold. What takes neighbours in a row at
// once has others after a transposition, and refuses it.
//
// Expected gain: where the tile is transposed in shared memory its copy becomes a straight one, so
// that vectorise_access makes it 16 bytes wide and pipeline_copies sends it so; a thread that
// computes several rows stores neighbours. With a pitch every row begins at 16 bytes, so that these
// wide accesses happen at every size.
#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/accesses.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/meaning.hpp"
#include "mutators/analysis/private_matrix.hpp"
#include "mutators/deal.hpp"
#include "mutators/edited.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/mutator.hpp"
#include "mutators/names.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"
#include "mutators/workspace_size.hpp"

namespace evo {
namespace {

/// The rewrites of one matrix. All of it throws CannotWrite where they cannot be written.
class MatrixRelayout {
public:
  MatrixRelayout(const Kernel& kernel, const DependenceGraph& graph, const PrivateMatrix& matrix)
      : kernel_(kernel), graph_(graph), matrix_(matrix) {}

  std::vector<Edit> transposed() {
    for (const MatrixUser& user : matrix_.users) {
      for (const MatrixElement& element : user.elements) {
        const ElementIndex& index = element.index;
        write_index(element, index.column, index.width->getNameAsString(), {index.row});
      }
      for (const Deal& deal : deals_to_swap(user)) {
        const auto edits = swapped(kernel_, deal);
        edits_.insert(edits_.end(), edits ? edits->begin() : throw CannotWrite{}, edits->end());
      }
    }
    return std::move(edits_);
  }

  std::vector<Edit> with_pitch() {
    const std::string pitch =
        Names(kernel_).fresh(matrix_.writer().matrix->getNameAsString() + "_pitch");
    for (const MatrixUser& user : matrix_.users) {
      for (const MatrixElement& element : user.elements) {
        write_index(element, {element.index.row}, pitch, element.index.column);
      }
      const clang::FunctionDecl& kernel = *user.launch->kernel;
      const auto* last = kernel.getParamDecl(kernel.getNumParams() - 1);
      insert(span(last->getSourceRange()).end, ", int " + pitch);
      insert(span(user.launch->arguments.back()->getSourceRange()).end, ", " + pitch);
    }
    const clang::ParmVarDecl& side = this->side();
    insert(checked(span_of(kernel_, *matrix_.writer().launch->call)).begin,
           "const int " + pitch + " = " + rounded_up(side) + ";\n");
    write_workspace(side);
    return std::move(edits_);
  }

private:
  using Summands = std::vector<const clang::Expr*>;

  Span span(clang::SourceRange range) const { return checked(span_of(kernel_, range)); }
  void insert(unsigned offset, std::string text) { edits_.push_back({offset, 0, std::move(text)}); }

  std::string text(const clang::Expr& expr, Binding binding) const {
    const auto found = operand(kernel_, expr, binding);
    return found ? *found : throw CannotWrite{};
  }
  std::string sum(const Summands& summands) const {
    std::string result;
    for (const clang::Expr* summand : summands) {
      result += (result.empty() ? "" : " + ") + text(*summand, Binding::Sum);
    }
    return result;
  }
  std::string factor(const Summands& summands) const {
    return summands.size() == 1 ? text(*summands.front(), Binding::Product)
                                : "(" + sum(summands) + ")";
  }

  void write_index(const MatrixElement& element, const Summands& outer, const std::string& pitch,
                   const Summands& inner) {
    const Span index = span(element.place->getIdx()->getSourceRange());
    edits_.push_back(
        {index.begin, index.length(), factor(outer) + " * " + pitch + " + " + sum(inner)});
  }

  // ---- transposed -------------------------------------------------------------------------------

  /// Of the loops in which neighbouring numbers are neighbours in a row, and of those that take on
  /// what such a loop has put into registers.
  std::vector<Deal> deals_to_swap(const MatrixUser& user) {
    std::vector<Deal> result;
    std::vector<Deal> others;
    for (const DeviceLoop& loop : loops_) {
      const auto deal =
          loop.function == user.launch->kernel ? deal_of(kernel_, loop) : std::nullopt;
      if (deal) {
        (goes_along_rows(*deal, user) ? result : others).push_back(*deal);
      }
    }
    const std::vector<Deal> fetching = result;
    std::ranges::copy_if(others, std::back_inserter(result), [&](const Deal& other) {
      return std::ranges::any_of(fetching, [&](const Deal& deal) {
        return same_deal(kernel_, deal, other) && takes_on(deal, other);
      });
    });
    return result;
  }

  static bool goes_along_rows(const Deal& deal, const MatrixUser& user) {
    return std::ranges::any_of(user.elements, [&](const MatrixElement& element) {
      return contains(*deal.loop->counted.loop, *element.place) &&
             mentions(*element.index.row, *deal.slow) &&
             std::ranges::any_of(element.index.column, [&](const clang::Expr* summand) {
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

  // ---- with a pitch -----------------------------------------------------------------------------

  /// The entry's parameter that is the matrix's side.
  const clang::ParmVarDecl& side() const {
    const MatrixUser& writer = matrix_.writer();
    const unsigned width = writer.elements.front().index.width->getFunctionScopeIndex();
    return present(
        clang::dyn_cast_or_null<clang::ParmVarDecl>(variable_of(writer.launch->arguments[width])));
  }

  static std::string rounded_up(const clang::ParmVarDecl& side) {
    return "(" + side.getNameAsString() + " + 3) / 4 * 4";
  }

  void write_workspace(const clang::ParmVarDecl& side) {
    const auto& workspace = present(workspace_function(kernel_, graph_.entry()));
    const auto& rows = present(parameter_of_workspace(graph_.entry(), workspace, side));
    const Span bytes = span(present(bytes_returned(workspace)).getSourceRange());
    const std::string type =
        matrix_.writer().matrix->getType()->getPointeeType().getUnqualifiedType().getAsString();
    edits_.push_back(
        {bytes.begin, bytes.length(),
         "sizeof(" + type + ") * " + rows.getNameAsString() + " * (" + rounded_up(rows) + ")"});
  }

  const Kernel& kernel_;
  const DependenceGraph& graph_;
  const PrivateMatrix& matrix_;
  const std::vector<DeviceLoop> loops_ = device_loops(kernel_);
  std::vector<Edit> edits_;
};

/// The edits if they can be written and keep the meaning.
template <class Write>
std::optional<std::vector<Edit>> legal(const Kernel& kernel, const Write& write) {
  std::vector<Edit> edits;
  try {
    edits = write();
  } catch (const CannotWrite&) {
    return std::nullopt;
  }
  sort_edits(edits);
  const auto after = edited(kernel, edits);
  return after && same_meaning(kernel, *after) ? std::optional(std::move(edits)) : std::nullopt;
}

class RelayoutMatrix : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "relayout_matrix",
        .summary =
            "transposes or pads a matrix that one kernel leaves in the workspace for others: "
            "straight, wide copies into a transposed tile, at any size",
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
      const auto matrix = base->getType()->isVoidPointerType()
                              ? private_matrix(kernel, *graph, *base)
                              : std::nullopt;
      if (matrix) {
        propose(kernel, *graph, *matrix, result);
      }
    }
    return result;
  }

private:
  static void propose(const Kernel& kernel, const DependenceGraph& graph,
                      const PrivateMatrix& matrix, std::vector<Rewrite>& result) {
    const std::string name = matrix.users[1].launch->kernel->getNameAsString() + "/" +
                             matrix.writer().matrix->getNameAsString();
    const auto add = [&](const std::string& choice, std::optional<std::vector<Edit>> edits) {
      if (edits) {
        result.push_back({name + choice, std::move(*edits)});
      }
    };
    const auto relayout = [&] { return MatrixRelayout(kernel, graph, matrix); };
    add(" transpose", legal(kernel, [&] { return relayout().transposed(); }));
    if (!matrix.padded) {
      add(" pitch 4", legal(kernel, [&] { return relayout().with_pitch(); }));
    }
  }
};

} // namespace

const Mutator& relayout_matrix() {
  static const RelayoutMatrix mutator;
  return mutator;
}

} // namespace evo
