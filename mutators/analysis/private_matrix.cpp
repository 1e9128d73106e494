#include "mutators/analysis/private_matrix.hpp"

#include <algorithm>
#include <array>

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/references.hpp"
#include "mutators/analysis/syntax_visitor.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

constexpr std::array<std::int64_t, 2> square_sizes{5, 12}; // to tell a square matrix by

/// The places array[index] of an array, and whether it is used in other ways.
class MatrixElements : public SyntaxVisitor {
public:
  MatrixElements(const Kernel& kernel, const clang::ParmVarDecl& array)
      : kernel_(kernel), array_(array) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override {
    uses_ += use->getDecl() == &array_ ? 1 : 0;
    return true;
  }
  bool VisitArraySubscriptExpr(clang::ArraySubscriptExpr* place) override {
    const auto* base = dyn_cast<clang::DeclRefExpr>(place->getBase()->IgnoreParenImpCasts());
    const auto index = base != nullptr && base->getDecl() == &array_
                           ? element_index(kernel_, *place->getIdx())
                           : std::nullopt;
    if (index) {
      list.push_back({place, *index});
    }
    return true;
  }
  /// With one pitch.
  bool are_all_uses() const {
    return !list.empty() && uses_ == list.size() &&
           std::ranges::all_of(list, [&](const MatrixElement& element) {
             return element.index.width == list.front().index.width;
           });
  }

  std::vector<MatrixElement> list;

private:
  const Kernel& kernel_;
  const clang::ParmVarDecl& array_;
  std::size_t uses_ = 0;
};

/// The last row and column that a launch writes.
class Extents : public AccessObserver {
public:
  Extents(const Evaluator& evaluator, int buffer, std::int64_t pitch)
      : evaluator_(evaluator), buffer_(buffer), pitch_(pitch) {}

  void access(const Access& access) override {
    const Array& array = evaluator_.arrays()[static_cast<std::size_t>(access.array)];
    const bool ours = array.space == Array::Space::Global && array.buffer == buffer_;
    for (std::size_t lane = 0; ours && access.write && lane < access.active->size(); ++lane) {
      const std::int64_t first = (*access.elements)[lane];
      for (std::int64_t i = first; (*access.active)[lane] && i < first + access.width; ++i) {
        last.row = std::max(last.row, i / pitch_);
        last.column = std::max(last.column, i % pitch_);
      }
    }
  }

  Element last{-1, -1};

private:
  const Evaluator& evaluator_;
  int buffer_;
  std::int64_t pitch_;
};

struct Shape {
  Element last;
  std::int64_t pitch = 0;
};

/// What the writer stores at a size.
std::optional<Shape> shape_at(const Kernel& kernel, const EvaluatedLaunch& launch,
                              const MatrixUser& writer) {
  const auto* pitch = std::get_if<std::int64_t>(
      &launch.arguments[writer.elements.front().index.width->getFunctionScopeIndex()]);
  const auto* buffer =
      std::get_if<Buffer>(&launch.arguments[writer.matrix->getFunctionScopeIndex()]);
  if (pitch == nullptr || buffer == nullptr || *pitch <= 0) {
    return std::nullopt;
  }
  Evaluator evaluator(kernel);
  Extents extents(evaluator, buffer->id, *pitch);
  for (int z = 0; z < launch.grid.z; ++z) {
    for (int y = 0; y < launch.grid.y; ++y) {
      for (int x = 0; x < launch.grid.x; ++x) {
        if (evaluator.run(launch.block_at({x, y, z}), extents)) {
          return std::nullopt;
        }
      }
    }
  }
  return Shape{extents.last, *pitch};
}

/// Whether the matrix is square, and padded where it has an odd number of columns.
bool take_shape(const Kernel& kernel, PrivateMatrix& matrix) {
  const auto dims = find_dims(kernel);
  return dims && std::ranges::all_of(square_sizes, [&](std::int64_t size) {
           const auto launches = launches_at(kernel, *dims, size);
           const auto writes = std::ranges::find_if(launches, [&](const EvaluatedLaunch& launch) {
             return launch.launch.call == matrix.writer().launch->call;
           });
           const auto shape =
               writes == launches.end() ? std::nullopt : shape_at(kernel, *writes, matrix.writer());
           matrix.padded = matrix.padded || (shape && shape->last.column + 1 < shape->pitch);
           return shape && shape->last.row >= 0 && shape->last.row == shape->last.column;
         });
}

/// What launches do to the matrix, in order; empty where it is not known.
std::vector<MatrixUser> users_of(const Kernel& kernel, const DependenceGraph& graph,
                                 const clang::ParmVarDecl& base) {
  std::vector<MatrixUser> users;
  for (std::size_t i = 0; i < graph.launches().size(); ++i) {
    const Uses& uses = graph.uses(i);
    const auto use = uses.find(&base);
    if (uses.contains(nullptr)) {
      return {};
    }
    if (use == uses.end()) {
      continue;
    }
    const Launch& launch = graph.launches()[i];
    const clang::ParmVarDecl* matrix = parameter_for(graph, launch, &base);
    const bool writes_first = use->second.writes == users.empty();
    if (matrix == nullptr || !writes_first || use->second.writes == use->second.reads) {
      return {};
    }
    MatrixElements elements(kernel, *matrix);
    elements.TraverseStmt(launch.kernel->getBody());
    if (!elements.are_all_uses()) {
      return {};
    }
    users.push_back({&launch, matrix, std::move(elements.list)});
  }
  return users;
}

} // namespace

std::optional<PrivateMatrix> private_matrix(const Kernel& kernel, const DependenceGraph& graph,
                                            const clang::ParmVarDecl& base) {
  PrivateMatrix matrix{users_of(kernel, graph, base)};
  const bool apart = std::ranges::all_of(matrix.users, [&](const MatrixUser& user) {
    return is_used_once(kernel, *user.launch->kernel);
  });
  return matrix.users.size() > 1 && apart && take_shape(kernel, matrix)
             ? std::optional(std::move(matrix))
             : std::nullopt;
}

} // namespace evo
