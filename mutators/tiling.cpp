#include "mutators/tiling.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <string>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/constants.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/inline_update.hpp"
#include "mutators/names.hpp"
#include "mutators/relocation.hpp"
#include "mutators/removal.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::isa;

class TilingWriter {
public:
  TilingWriter(const Kernel& kernel, const PlainReduction& reduction, const TileShape& shape)
      : kernel_(kernel), reduction_(reduction), code_(reduction.code), shape_(shape),
        removal_(kernel), names_(kernel), local_names_(names_in(*code_.kernel)) {}

  std::vector<Edit> edits() {
    remove_old_geometry();
    name_everything();
    const auto place = offset_before(kernel_, *code_.kernel);
    insert(place ? *place : throw CannotWrite{}, constants() + tiles());
    replace(checked(span_of(kernel_, *code_.kernel->getBody())), body());
    write_bounds();
    write_launch();
    edits_.insert(edits_.end(), removal_.edits().begin(), removal_.edits().end());
    sort_edits(edits_);
    return std::move(edits_);
  }

private:
  void replace(Span span, std::string text) {
    edits_.push_back({span.begin, span.length(), std::move(text)});
  }
  void insert(unsigned offset, std::string text) { edits_.push_back({offset, 0, std::move(text)}); }
  Span span(const clang::Expr& expr) const {
    return checked(span_of(kernel_, expr.IgnoreUnlessSpelledInSource()->getSourceRange()));
  }

  // ---- names ------------------------------------------------------------------------------------

  /// What the parent's block needed goes with it.
  void remove_old_geometry() {
    removal_.replaced(checked(span_of(kernel_, *code_.kernel->getBody())));
    removal_.replaced(span(*reduction_.launch.grid));
    removal_.replaced(span(*reduction_.launch.block));
    if (const auto* bounds = code_.kernel->getAttr<clang::CUDALaunchBoundsAttr>()) {
      removal_.replaced(written_bounds(*bounds));
    }
    removal_.unneeded_declarations(mentioned());
  }

  /// The constants that the new code names too.
  std::set<const clang::ValueDecl*> mentioned() const {
    std::set<const clang::ValueDecl*> found;
    const std::function<void(const clang::Stmt&)> look = [&](const clang::Stmt& code) {
      visit(kernel_, code_, code, {.use = [&](const clang::DeclRefExpr& use) {
              const auto* variable = dyn_cast<clang::VarDecl>(use.getDecl());
              if (variable != nullptr && found.insert(variable).second &&
                  variable->isLocalVarDecl() && variable->hasInit()) {
                look(*variable->getInit());
              }
            }});
    };
    look(*reduction_.loop.counted.loop);
    look(*code_.store.element->getIdx());
    look(*code_.store.assignment->getRHS());
    for (const auto* statements : {&reduction_.definitions, &reduction_.epilogue}) {
      for (const clang::Stmt* statement : *statements) {
        look(*statement);
      }
    }
    for (const Condition& condition : reduction_.conditions) {
      look(*condition.expression);
    }
    for (const Constant& constant : find_constants(kernel_)) {
      if (constant.name == reduction_.rows.in_kernel ||
          constant.name == reduction_.columns.in_kernel) {
        found.insert(constant.declaration);
      }
    }
    return found;
  }

  std::string constant(const std::string& name) {
    const std::string wanted = code_.kernel->getNameAsString() + "_" + name;
    const clang::SourceManager& sources = kernel_.ast().getSourceManager();
    for (const Constant& constant : find_constants(kernel_)) {
      if (constant.name == wanted &&
          removal_.removes(sources.getFileOffset(constant.declaration->getLocation()))) {
        return wanted;
      }
    }
    return names_.fresh(wanted);
  }

  std::string local(const std::string& name) {
    const std::string result = fresh_name(name, code_.kernel->getNameAsString(), local_names_);
    local_names_.insert(result);
    return result;
  }

  /// The variable's own name, which is free in the new body.
  std::string coordinate(const clang::Expr& expr, const std::string& name) {
    const clang::VarDecl* variable = variable_of(&expr);
    return variable != nullptr && variable->isLocalVarDecl() ? variable->getNameAsString()
                                                             : local(name);
  }

  std::string tile_name(const ReductionOperand& operand) {
    const std::string array = operand.array->getNameAsString();
    std::string name = array;
    name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
    name = fresh_name(name == array ? array + "_tile" : name, column_, tile_names_);
    tile_names_.insert(name);
    return name;
  }

  void name_everything() {
    const std::string kernel = code_.kernel->getNameAsString();
    block_m_ = constant("block_m");
    block_n_ = constant("block_n");
    block_k_ = constant("block_k");
    thread_m_ = constant("thread_m");
    thread_n_ = constant("thread_n");
    threads_n_ = constant("threads_n");
    threads_ = constant("threads");
    std::string type;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      const bool starts_word = i == 0 || kernel[i - 1] == '_';
      type += kernel[i] == '_' ? ""
              : starts_word
                  ? std::string(
                        1, static_cast<char>(std::toupper(static_cast<unsigned char>(kernel[i]))))
                  : std::string(1, kernel[i]);
    }
    type_ = names_.fresh(type + "Tiles");
    row_ = coordinate(*code_.row(), "row");
    column_ = coordinate(*code_.column(), "col");
    counter_ = reduction_.loop.counted.counter->getNameAsString();
    sum_ = reduction_.sum->getNameAsString();
    shared_ = local(kernel + "_shared");
    tiles_ = local("tiles");
    block_row_ = local("block_" + row_);
    block_column_ = local("block_" + column_);
    thread_row_ = local("thread_" + row_);
    thread_column_ = local("thread_" + column_);
    first_ = local(counter_ + "0");
    i_ = local("i");
    j_ = local("j");
    row_tile_ = tile_name(reduction_.of_row);
    column_tile_ = tile_name(reduction_.of_column);
  }

  // ---- what is written --------------------------------------------------------------------------

  std::string constants() const {
    const auto line = [](const std::string& name, const std::string& value) {
      return "constexpr int " + name + " = " + value + ";\n";
    };
    const auto number = [&](const std::string& name, int value) {
      return line(name, std::to_string(value));
    };
    return number(block_m_, shape_.block_m) + number(block_n_, shape_.block_n) +
           number(block_k_, shape_.block_k) + number(thread_m_, shape_.thread_m) +
           number(thread_n_, shape_.thread_n) + line(threads_n_, block_n_ + " / " + thread_n_) +
           line(threads_, block_m_ + " / " + thread_m_ + " * " + threads_n_) + "\n";
  }

  /// A tile's extents, or a place in it, with what is neighbouring in memory last.
  static std::pair<std::string, std::string> ordered(const ReductionOperand& operand,
                                                     const std::string& coordinate,
                                                     const std::string& counter) {
    return operand.counter_is_inner ? std::pair(coordinate, counter)
                                    : std::pair(counter, coordinate);
  }

  static std::string place_in(const std::string& tile, const ReductionOperand& operand,
                              const std::string& coordinate, const std::string& counter) {
    const auto [outer, inner] = ordered(operand, coordinate, counter);
    return tile + "[" + outer + "][" + inner + "]";
  }

  std::string tiles() const {
    return "struct " + type_ + " {\nfloat " +
           place_in(row_tile_, reduction_.of_row, block_m_, block_k_) + ";\nfloat " +
           place_in(column_tile_, reduction_.of_column, block_n_, block_k_) + ";\n};\n\n";
  }

  std::string body() {
    return "{\nextern __shared__ float " + shared_ + "[];\n" + type_ + " &" + tiles_ +
           " = *reinterpret_cast<" + type_ + " *>(" + shared_ + ");\n\n" + coordinates() + "\n" +
           type_of_sum() + " " + sum_ + "[" + thread_m_ + "][" + thread_n_ + "] = {};\n" +
           reduction_loop() + "\n" + epilogue() + "}";
  }

  static std::string type_of(const clang::VarDecl& variable) {
    return variable.getType().getUnqualifiedType().getAsString();
  }
  std::string type_of_sum() const { return type_of(*reduction_.sum); }
  std::string type_of(const clang::Expr& coordinate) const {
    const clang::VarDecl* variable = variable_of(&coordinate);
    if (variable != nullptr && variable->isLocalVarDecl()) {
      return type_of(*variable);
    }
    const clang::QualType type = coordinate.getType().getUnqualifiedType();
    const bool wide =
        kernel_.ast().getTypeSize(type) > kernel_.ast().getTypeSize(kernel_.ast().IntTy);
    return wide ? type.getAsString() : "int";
  }

  std::string coordinates() const {
    return "const " + type_of(*code_.row()) + " " + block_row_ + " = blockIdx.y * " + block_m_ +
           ";\nconst " + type_of(*code_.column()) + " " + block_column_ + " = blockIdx.x * " +
           block_n_ + ";\nconst int " + thread_row_ + " = threadIdx.x / " + threads_n_ + " * " +
           thread_m_ + ";\nconst int " + thread_column_ + " = threadIdx.x % " + threads_n_ + " * " +
           thread_n_ + ";\n";
  }

  static std::string loop(const std::string& type, const std::string& counter,
                          const std::string& start, const std::string& limit,
                          const std::string& step) {
    return "for (" + type + " " + counter + " = " + start + "; " + counter + " < " + limit + "; " +
           step + ") {\n";
  }
  static std::string count(const std::string& counter, const std::string& limit) {
    return loop("int", counter, "0", limit, "++" + counter);
  }

  std::string limit() const {
    return Relocation(kernel_, reduction_, {}).text(*reduction_.loop.counted.limit, Binding::Sum);
  }

  std::string reduction_loop() const {
    const CountedLoop& counted = reduction_.loop.counted;
    const std::string start =
        Relocation(kernel_, reduction_, {}).text(*counted.start, Binding::Sum);
    return loop(type_of(*counted.counter), first_, start, limit(), first_ + " += " + block_k_) +
           load(reduction_.of_row, row_tile_, row_, block_m_, block_row_, reduction_.rows) +
           load(reduction_.of_column, column_tile_, column_, block_n_, block_column_,
                reduction_.columns) +
           "__syncthreads();\n" + core() + "__syncthreads();\n}\n";
  }

  /// Copies a tile, with zeros where the matrix or the sum has ended.
  std::string load(const ReductionOperand& operand, const std::string& tile,
                   const std::string& coordinate, const std::string& block,
                   const std::string& origin, const MatrixExtent& extent) const {
    const auto [outer, inner] = ordered(operand, coordinate, counter_);
    const auto [rows, width] = ordered(operand, block, block_k_);
    const std::string line = origin + " + " + coordinate;
    const std::string step = first_ + " + " + counter_;
    const auto [first, second] =
        ordered(operand, line + " < " + extent.in_kernel, step + " < " + limit());
    return loop("int", i_, "threadIdx.x", rows + " * " + width, i_ + " += " + threads_) +
           "const int " + outer + " = " + i_ + " / " + width + ";\nconst int " + inner + " = " +
           i_ + " % " + width + ";\n" + tiles_ + "." +
           place_in(tile, operand, coordinate, counter_) + " = " + first + " && " + second + " ? " +
           Relocation(kernel_, reduction_, {line, line, step, {}})
               .text(*operand.value, Binding::Sum) +
           " : 0.0f;\n}\n";
  }

  std::string core() const {
    const auto element = [&](const ReductionOperand& operand, const std::string& tile,
                             const std::string& thread, const std::string& index) {
      const Span where = checked(span_of(kernel_, operand.value->getSourceRange()));
      return Edit{where.begin, where.length(),
                  tiles_ + "." + place_in(tile, operand, thread + " + " + index, counter_)};
    };
    std::vector<Edit> edits{element(reduction_.of_row, row_tile_, thread_row_, i_),
                            element(reduction_.of_column, column_tile_, thread_column_, j_)};
    const Coordinates here{row_, column_, counter_, sum_element()};
    for (Edit& edit : Relocation(kernel_, reduction_, here).edits(*reduction_.update)) {
      const bool replaced = std::ranges::any_of(edits, [&](const Edit& whole) {
        return whole.offset <= edit.offset && edit.offset < whole.offset + whole.length;
      });
      if (!replaced) {
        edits.push_back(std::move(edit));
      }
    }
    std::string pragmas;
    for (const clang::Attr* pragma : reduction_.loop.attributes) {
      pragmas += render(kernel_, checked(pragma_line(kernel_, *pragma)));
    }
    return pragmas + count(counter_, block_k_) + count(i_, thread_m_) + count(j_, thread_n_) +
           render(kernel_, checked(span_of(kernel_, *reduction_.update)), edits) + "\n}\n}\n}\n";
  }

  std::string sum_element() const { return sum_ + "[" + i_ + "][" + j_ + "]"; }

  std::string epilogue() const {
    const auto coordinate = [&](const clang::Expr& expr, const std::string& name,
                                const std::string& block, const std::string& thread,
                                const std::string& index) {
      return "const " + type_of(expr) + " " + name + " = " + block + " + " + thread + " + " +
             index + ";\n";
    };
    std::vector<const clang::Stmt*> statements = reduction_.definitions;
    statements.insert(statements.end(), reduction_.epilogue.begin(), reduction_.epilogue.end());
    const Relocation here(kernel_, reduction_, {row_, column_, {}, sum_element()}, statements);
    std::string text = count(i_, thread_m_) + count(j_, thread_n_) +
                       coordinate(*code_.row(), row_, block_row_, thread_row_, i_) +
                       coordinate(*code_.column(), column_, block_column_, thread_column_, j_) +
                       "if (" + row_ + " < " + reduction_.rows.in_kernel + " && " + column_ +
                       " < " + reduction_.columns.in_kernel;
    for (const Condition& condition : reduction_.conditions) {
      text += std::string(" && ") + (condition.holds ? "" : "!") +
              here.text(*condition.expression, Binding::Operand);
    }
    text += ") {\n";
    for (const clang::Stmt* statement : statements) {
      text += here.statement(*statement);
    }
    return text + store(here) + "}\n}\n}\n";
  }

  std::string store(const Relocation& here) const {
    const clang::BinaryOperator& assignment = *code_.store.assignment;
    std::vector<Edit> edits = here.edits(*code_.store.element->getIdx());
    std::ranges::move(here.edits(*assignment.getRHS()), std::back_inserter(edits));
    return render(kernel_, checked(span_of(kernel_, assignment)), edits) + "\n";
  }

  // ---- the launch -------------------------------------------------------------------------------

  /// `__launch_bounds__(...)` as a whole, which is a macro.
  Span written_bounds(const clang::CUDALaunchBoundsAttr& bounds) const {
    const clang::SourceManager& sources = kernel_.ast().getSourceManager();
    return checked(span_of(kernel_, sources.getExpansionRange(bounds.getLocation()).getAsRange()));
  }

  void write_bounds() {
    const auto* bounds = code_.kernel->getAttr<clang::CUDALaunchBoundsAttr>();
    if (bounds == nullptr) {
      return;
    }
    const clang::Expr* blocks = bounds->getMinBlocks();
    const auto count = blocks == nullptr ? std::nullopt : constant_value(kernel_, *blocks);
    replace(written_bounds(*bounds),
            "__launch_bounds__(" + threads_ + (count ? ", " + std::to_string(*count) : "") + ")");
  }

  void write_launch() {
    const Launch& launch = reduction_.launch;
    if (!clang::isa_and_nonnull<clang::CompoundStmt>(statement_around(*launch.call))) {
      throw CannotWrite{};
    }
    const std::string bytes = "sizeof(" + type_ + ")";
    replace(span(*launch.grid), "dim3(" + blocks(reduction_.columns, block_n_) + ", " +
                                    blocks(reduction_.rows, block_m_) + ")");
    replace(span(*launch.block), threads_);
    if (launch.shared_bytes != nullptr) {
      replace(span(*launch.shared_bytes), bytes);
    } else {
      insert(span(*launch.block).end, ", " + bytes);
    }
    insert(checked(span_of(kernel_, *launch.call)).begin,
           "cudaFuncSetAttribute(" + code_.kernel->getNameAsString() +
               ", cudaFuncAttributeMaxDynamicSharedMemorySize, " + bytes + ");\n");
  }

  const clang::Stmt* statement_around(const clang::Stmt& call) const {
    const clang::Stmt* around = parent_of(kernel_, call);
    while (around != nullptr && isa<clang::Expr>(around)) {
      around = parent_of(kernel_, *around);
    }
    return around;
  }

  /// How many blocks cover an extent, by the parent's own function if it has one.
  std::string blocks(const MatrixExtent& extent, const std::string& block) const {
    const std::string divide = ceiling_division();
    return divide.empty() ? "(" + extent.in_entry + " + " + block + " - 1) / " + block
                          : divide + "(" + extent.in_entry + ", " + block + ")";
  }

  /// The function of two integers in the launch's grid that divides and rounds up.
  std::string ceiling_division() const {
    struct Calls : SyntaxVisitor {
      bool VisitCallExpr(clang::CallExpr* call) override {
        const clang::FunctionDecl* callee = call->getDirectCallee();
        if (callee != nullptr && callee->getNumParams() == 2 && callee->isConstexpr()) {
          found.push_back(call);
        }
        return true;
      }
      std::vector<const clang::CallExpr*> found;
    } calls;
    calls.TraverseStmt(const_cast<clang::Expr*>(reduction_.launch.grid));
    for (const clang::CallExpr* call : calls.found) {
      if (rounds_up(*call)) {
        return call->getDirectCallee()->getNameAsString();
      }
    }
    return "";
  }

  /// Whether a call in the entry is ceil(a / b), whatever the problem's size.
  bool rounds_up(const clang::CallExpr& call) const {
    const auto dims = find_dims(kernel_);
    const clang::FunctionDecl* entry = find_entry(kernel_);
    return std::ranges::all_of(std::initializer_list<std::int64_t>{255, 256, 257, 1000},
                               [&](std::int64_t size) {
                                 Assignment values;
                                 std::size_t next = 0;
                                 const std::vector<std::int64_t> numbers = dims->at(size);
                                 for (const clang::ParmVarDecl* parameter : entry->parameters()) {
                                   if (parameter->getType()->isIntegerType()) {
                                     values[parameter] = numbers[next++];
                                   }
                                 }
                                 Evaluator evaluator(kernel_, values);
                                 const auto quotient = evaluator.value(call);
                                 const auto a = evaluator.value(*call.getArg(0));
                                 const auto b = evaluator.value(*call.getArg(1));
                                 const auto* found = std::get_if<std::int64_t>(&quotient);
                                 const auto* above = std::get_if<std::int64_t>(&a);
                                 const auto* below = std::get_if<std::int64_t>(&b);
                                 return found != nullptr && above != nullptr && below != nullptr &&
                                        *below > 0 && *found == (*above + *below - 1) / *below;
                               });
  }

  const Kernel& kernel_;
  const PlainReduction& reduction_;
  const ElementwiseUpdate& code_;
  const TileShape& shape_;
  Removal removal_;
  Names names_;
  std::set<std::string> local_names_;
  std::set<std::string> tile_names_;
  std::string block_m_, block_n_, block_k_, thread_m_, thread_n_, threads_n_, threads_; // constants
  std::string type_;                   // of the struct of tiles
  std::string row_tile_, column_tile_; // its members
  std::string shared_, tiles_;
  std::string block_row_, block_column_;     // of the block's first element
  std::string thread_row_, thread_column_;   // of the thread's first, in the block
  std::string row_, column_, counter_, sum_; // as in the parent
  std::string first_;                        // the k that a tile begins with
  std::string i_, j_;
  std::vector<Edit> edits_;
};

} // namespace

std::optional<std::vector<Edit>> tile(const Kernel& kernel, const PlainReduction& reduction,
                                      const TileShape& shape) {
  try {
    return TilingWriter(kernel, reduction, shape).edits();
  } catch (const CannotWrite&) {
    return std::nullopt;
  }
}

} // namespace evo
