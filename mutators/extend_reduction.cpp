// Adds a short product to a long one by further steps of its reduction loop.
//
//   before                                    after "gemm/k0 extend by update_sum"
//   for (k0 = 0; k0 < d; k0 += K) {           for (k0 = 0; k0 < d; k0 += K) {
//     w[row][k] = ... k0 + k < d                as before
//         ? W[(block_row + row) * d           }
//             + k0 + k] : 0.0f;               for (k0 = 0; k0 < rank; k0 += K) {
//     x[k][col] = ... k0 + k < d                w[row][k] = ... k0 + k < rank
//         ? X[(k0 + k) * d                          ? A[(block_row + row) * rank
//             + block_col + col] : 0.0f;                + k0 + k] : 0.0f;
//     ...                                       x[k][col] = ... k0 + k < rank
//   }                                               ? T[(k0 + k) * d + block_col + col] : 0.0f;
//   ...                                         ...
//     float update_sum = 0.0f;                }
//     for (k = 0; k < rank; ++k)              ...
//       update_sum += A[row * rank + k] *       Y[row * d + col] = sum[i][j];
//                     T[k * d + col];
//     Y[row * d + col] = sum[i][j] + update_sum;
//
// The columns of A go on where those of W end, and the rows of T where those of X do; what was a
// sum of its own, added last, is added step by step, so results are rounded otherwise.
//
// Precondition: a reduction loop over k tiles up to a size, which reads one array with its counter
// in the column and one with it in the row; behind it stores of a value plus a float that nothing
// else uses, which a loop right before sums up from zero: products of two elements, one with the
// store's row and one with its column. Legal if both files compute the same polynomials of their
// inputs (analysis/meaning.hpp), the new one without races.
//
// Expected gain: the short product is read through shared memory and computed by the same wide
// steps, instead of from global memory for every element.
#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/element_stores.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/hinted_access.hpp"
#include "mutators/analysis/loops.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/analysis/stage_model.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/edited.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using Elements = std::vector<const clang::ArraySubscriptExpr*>;

/// What a piece of code reads, compares, sums up and stores.
class ReductionParts : public SyntaxVisitor {
public:
  explicit ReductionParts(const clang::Stmt& code) {
    TraverseStmt(const_cast<clang::Stmt*>(&code));
  }

  bool VisitArraySubscriptExpr(clang::ArraySubscriptExpr* element) override {
    if (memory_of(*element).space == Space::Global) {
      elements.push_back(element);
    }
    return true;
  }
  bool VisitBinaryOperator(clang::BinaryOperator* operation) override {
    if (operation->isRelationalOp()) {
      comparisons.push_back(operation);
    }
    if (operation->getOpcode() == clang::BO_Assign) {
      assignments.push_back(operation);
    }
    return true;
  }

  Elements elements; // in global memory
  std::vector<const clang::BinaryOperator*> comparisons;
  std::vector<const clang::BinaryOperator*> assignments;
};

/// float sum = 0; for (k = 0; k < limit; ++k) sum += of_row(row, k) * of_column(k, column);
/// ... = kept + sum;
struct ShortProduct {
  const clang::DeclStmt* definition = nullptr;
  const clang::VarDecl* sum = nullptr;
  CountedLoop loop;
  const clang::BinaryOperator* store = nullptr;
  const clang::Expr* kept = nullptr;
  ElementIndex stored;
  const clang::ArraySubscriptExpr* of_row = nullptr;
  const clang::ArraySubscriptExpr* of_column = nullptr;
};

const clang::ArraySubscriptExpr* element_in(const clang::Expr& factor) {
  const auto load = hinted_load(&factor);
  return dyn_cast<clang::ArraySubscriptExpr>(load ? load->place : factor.IgnoreParenImpCasts());
}

/// The variables that stand for the coordinates of what is stored.
const clang::VarDecl* row_of(const ShortProduct& product) {
  return variable_of(product.stored.row);
}
const clang::VarDecl* column_of(const ShortProduct& product) {
  return product.stored.column.size() == 1 ? variable_of(product.stored.column.front()) : nullptr;
}

/// The one statement of a body.
const clang::Stmt* only_statement(const clang::Stmt& body) {
  const auto* braces = dyn_cast<clang::CompoundStmt>(&body);
  return braces == nullptr     ? &body
         : braces->size() == 1 ? only_statement(*braces->body_front())
                               : nullptr;
}

bool take_factors(ShortProduct& product) {
  const auto* update =
      clang::dyn_cast_or_null<clang::BinaryOperator>(only_statement(*product.loop.loop->getBody()));
  const auto* factors =
      update == nullptr || update->getOpcode() != clang::BO_AddAssign ||
              variable_of(update->getLHS()) != product.sum
          ? nullptr
          : dyn_cast<clang::BinaryOperator>(update->getRHS()->IgnoreParenImpCasts());
  if (factors == nullptr || factors->getOpcode() != clang::BO_Mul) {
    return false;
  }
  for (const clang::Expr* factor : {factors->getLHS(), factors->getRHS()}) {
    const auto* element = element_in(*factor);
    if (element != nullptr && mentions(*element, *row_of(product))) {
      product.of_row = element;
    } else if (element != nullptr && mentions(*element, *column_of(product))) {
      product.of_column = element;
    }
  }
  return product.of_row != nullptr && product.of_column != nullptr;
}

std::optional<ShortProduct> short_product(const Kernel& kernel,
                                          const clang::BinaryOperator& store) {
  const auto* element = element_in(*store.getLHS());
  const auto* value = dyn_cast<clang::BinaryOperator>(store.getRHS()->IgnoreParenImpCasts());
  const auto index = element == nullptr ? std::nullopt : element_index(kernel, *element->getIdx());
  const auto* braces = dyn_cast<clang::CompoundStmt>(parent_of(kernel, store));
  if (!index || value == nullptr || value->getOpcode() != clang::BO_Add || braces == nullptr) {
    return std::nullopt;
  }
  ShortProduct product;
  product.store = &store;
  product.kept = value->getLHS();
  product.stored = *index;
  product.sum = variable_of(value->getRHS());
  for (const clang::Stmt* statement : braces->body()) {
    const auto* definition = dyn_cast<clang::DeclStmt>(statement);
    const auto* loop = dyn_cast<clang::ForStmt>(statement);
    if (definition != nullptr && definition->isSingleDecl() &&
        definition->getSingleDecl() == product.sum) {
      product.definition = definition;
    } else if (loop != nullptr && product.sum != nullptr && mentions(*loop, *product.sum)) {
      const auto counted = counted_loop(kernel, *loop);
      product.loop = counted ? *counted : product.loop;
    }
  }
  const auto uses = product.sum == nullptr ? std::nullopt : references(kernel, *product.sum);
  return product.definition != nullptr && product.loop.loop != nullptr &&
                 row_of(product) != nullptr && column_of(product) != nullptr && uses &&
                 uses->size() == 2 && take_factors(product)
             ? std::optional(product)
             : std::nullopt;
}

/// One reduction loop's rewrite.
class Extension {
public:
  Extension(const Kernel& kernel, const Stages& stages, const CountedLoop& loop,
            const ShortProduct& product)
      : kernel_(kernel), stages_(stages), loop_(loop), product_(product) {}

  std::optional<std::vector<Edit>> edits() {
    const auto begin = begin_of(kernel_, *stages_.statement);
    const auto whole = span_of(kernel_, *stages_.statement);
    extend_operands();
    replace(*loop_.limit, limit());
    for (const clang::BinaryOperator* comparison :
         ReductionParts(*loop_.loop->getBody()).comparisons) {
      if (mentions(*comparison->getLHS(), *loop_.counter) &&
          same_expression(kernel_, comparison->getRHS(), loop_.limit)) {
        replace(*comparison->getRHS(), limit());
      }
    }
    if (!begin || !whole || !possible_) {
      return std::nullopt;
    }
    sort_edits(copied_);
    std::vector<Edit> result{
        {whole->end, 0, "\n" + render(kernel_, {*begin, whole->end}, copied_) + "\n"}};
    for (const clang::Stmt* needless : {static_cast<const clang::Stmt*>(product_.definition),
                                        static_cast<const clang::Stmt*>(product_.loop.loop)}) {
      const auto span = span_of(kernel_, *needless);
      if (!span) {
        return std::nullopt;
      }
      result.push_back({span->begin, span->length(), ""});
    }
    const auto value = span_of(kernel_, product_.store->getRHS()->getSourceRange());
    const auto kept = operand(kernel_, *product_.kept, Binding::Sum);
    if (!value || !kept) {
      return std::nullopt;
    }
    result.push_back({value->begin, value->length(), *kept});
    sort_edits(result);
    return result;
  }

private:
  std::string limit() { return text(*product_.loop.limit, {}); }

  /// A and T instead of W and X, wherever the loop names them.
  void extend_operands() {
    for (const clang::ArraySubscriptExpr* element :
         ReductionParts(*loop_.loop->getBody()).elements) {
      const auto index = element_index(kernel_, *element->getIdx());
      if (!index) {
        possible_ = false;
        return;
      }
      const std::string row = text(*index->row, {});
      std::string column;
      for (const clang::Expr* summand : index->column) {
        column += (column.empty() ? "" : " + ") + text(*summand, {});
      }
      const bool of_column = mentions(*index->row, *loop_.counter);
      const auto& wanted = of_column ? *product_.of_column : *product_.of_row;
      replace(*element, text(wanted, {{of_column ? column_of(product_) : row_of(product_),
                                       of_column ? column : row},
                                      {product_.loop.counter, of_column ? row : column}}));
    }
  }

  using Substitution = std::map<const clang::VarDecl*, std::string>;

  /// The text of an expression with sums in place of some variables.
  std::string text(const clang::Expr& expr, const Substitution& with) {
    std::vector<Edit> edits;
    substitute(expr, with, edits);
    sort_edits(edits);
    const auto span = span_of(kernel_, expr.getSourceRange());
    possible_ = possible_ && span;
    return span ? render(kernel_, *span, edits) : "";
  }

  void substitute(const clang::Stmt& code, const Substitution& with, std::vector<Edit>& edits) {
    const auto* use = dyn_cast<clang::DeclRefExpr>(&code);
    const auto* variable = use == nullptr ? nullptr : dyn_cast<clang::VarDecl>(use->getDecl());
    const auto found = with.find(variable);
    if (variable != nullptr && found != with.end()) {
      const auto span = span_of(kernel_, use->getSourceRange());
      possible_ = possible_ && span;
      const bool plain = stands_in_sum(*use) || found->second.find(' ') == std::string::npos ||
                         found->second.front() == '(';
      edits.push_back({span.value_or(Span{}).begin, span.value_or(Span{}).length(),
                       plain ? found->second : "(" + found->second + ")"});
    }
    for (const clang::Stmt* child : code.children()) {
      substitute(*child, with, edits);
    }
  }

  bool stands_in_sum(const clang::DeclRefExpr& use) const {
    const clang::Stmt* around = parent_of(kernel_, use);
    while (clang::isa<clang::ImplicitCastExpr>(around)) {
      around = parent_of(kernel_, *around);
    }
    const auto* sum = dyn_cast<clang::BinaryOperator>(around);
    return sum != nullptr && sum->getOpcode() == clang::BO_Add;
  }

  void replace(const clang::Expr& node, const std::string& with) {
    const auto span = span_of(kernel_, node.getSourceRange());
    possible_ = possible_ && span;
    copied_.push_back({span.value_or(Span{}).begin, span.value_or(Span{}).length(), with});
  }

  const Kernel& kernel_;
  const Stages& stages_;
  const CountedLoop& loop_;
  const ShortProduct& product_;
  std::vector<Edit> copied_; // of the loop
  bool possible_ = true;
};

class ExtendReduction : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "extend_reduction",
        .summary = "computes the low-rank term by further steps of the reduction loop: through "
                   "shared memory, by the same wide steps",
        .before = "for (k0 < d) sum += W X;  for (k < 16) low += A T;  Y = sum + low;",
        .after = "for (k0 < d) sum += W X;  for (k0 < 16) sum += A T;  Y = sum;",
        .keeps_order = false,
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<DeviceLoop> loops = device_loops(kernel);
    for (const Stages& stages : find_stages(kernel)) {
      const DeviceLoop* loop = find_loop(loops, *stages.loop);
      if (loop == nullptr || stages.inside_loop || stages.tiles.empty()) {
        continue;
      }
      for (const clang::Stmt* epilogue : stages.epilogue) {
        for (const clang::BinaryOperator* store : ReductionParts(*epilogue).assignments) {
          const auto product = short_product(kernel, *store);
          auto edits =
              product ? Extension(kernel, stages, loop->counted, *product).edits() : std::nullopt;
          if (edits && computes_the_same(kernel, *edits)) {
            result.push_back(
                {loop->name + " extend by " + product->sum->getNameAsString(), std::move(*edits)});
          }
        }
      }
    }
    return result;
  }
};

} // namespace

const Mutator& extend_reduction() {
  static const ExtendReduction mutator;
  return mutator;
}

} // namespace evo
