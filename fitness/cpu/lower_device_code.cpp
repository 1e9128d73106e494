#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/TypeLoc.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>
#include <fmt/format.h>

#include "fitness/cpu/lowering.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/ptx_instruction.hpp"

namespace evo::cpu {
namespace {

using clang::Expr;
using llvm::dyn_cast;

// Of cuda_declarations/: what takes its site as a last argument.
constexpr std::array<std::string_view, 10> with_site{
    "__syncthreads", "__ldg",     "__ldcs",      "__ldcg",          "__stcs",
    "__stcg",        "atomicAdd", "__shfl_sync", "__shfl_xor_sync", "__shfl_down_sync"};

template <typename Names> bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The array that a subscript's base is, or nullptr for a pointer.
const Expr* subscripted_array(const clang::ArraySubscriptExpr& subscript) {
  const auto* decay = dyn_cast<clang::ImplicitCastExpr>(subscript.getBase()->IgnoreParens());
  return decay != nullptr && decay->getCastKind() == clang::CK_ArrayToPointerDecay
             ? decay->getSubExpr()
             : nullptr;
}

/// Whether an lvalue is known to be a variable of the thread, a constant, or a part of one. All
/// others may lie in memory: the runtime finds out which.
bool is_private(const Expr* place) {
  place = place->IgnoreParenCasts();
  if (!place->isGLValue()) {
    return true;
  }
  if (const auto* name = dyn_cast<clang::DeclRefExpr>(place)) {
    const auto* variable = dyn_cast<clang::VarDecl>(name->getDecl());
    return variable != nullptr && !variable->hasAttr<clang::CUDASharedAttr>() &&
           !variable->getType()->isReferenceType();
  }
  if (const auto* member = dyn_cast<clang::MemberExpr>(place)) {
    return !member->isArrow() && !member->getMemberDecl()->getType()->isReferenceType() &&
           is_private(member->getBase());
  }
  if (const auto* subscript = dyn_cast<clang::ArraySubscriptExpr>(place)) {
    const Expr* array = subscripted_array(*subscript);
    return array != nullptr && is_private(array);
  }
  if (const auto* choice = dyn_cast<clang::ConditionalOperator>(place)) {
    return is_private(choice->getTrueExpr()) && is_private(choice->getFalseExpr());
  }
  if (const auto* operation = dyn_cast<clang::BinaryOperator>(place)) {
    return operation->isAssignmentOp(); // its value is the one just written
  }
  if (const auto* operation = dyn_cast<clang::UnaryOperator>(place)) {
    return operation->isIncrementDecrementOp();
  }
  return llvm::isa<clang::MaterializeTemporaryExpr, clang::StringLiteral>(place);
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// A declaration's text without the words that make it shared.
std::string without_storage(const std::string& text) {
  constexpr std::array<std::string_view, 3> storage{"extern", "static", "__shared__"};
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const auto end = static_cast<std::size_t>(
        std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(i), text.end(), is_word) -
        text.begin());
    const std::string_view word(text.data() + i, std::max(end - i, std::size_t{1}));
    if (!contains(storage, word)) {
      result += word;
    }
    i += word.size();
  }
  return result;
}

/// Whether a function gets the site of its call: what several threads do together in assembly is
/// told apart by who calls it. The parameter's name is `caller`.
bool takes_caller(const clang::FunctionDecl& function) {
  const clang::FunctionDecl* definition = function.getDefinition();
  return definition != nullptr && !llvm::isa<clang::CXXMethodDecl>(definition) &&
         !definition->hasAttr<clang::CUDAGlobalAttr>() && assembly_in(*definition) != nullptr;
}
constexpr std::string_view caller = "evo_caller";

class DeviceCode : public SyntaxVisitor {
public:
  DeviceCode(Lowering& lowering, const clang::FunctionDecl& function)
      : lowering_(lowering), function_(function) {}

  void run() {
    if (takes_caller(function_)) {
      add_caller();
    }
    TraverseDecl(const_cast<clang::FunctionDecl*>(&function_));
  }

  /// Initialiser lists as they are evaluated.
  bool shouldVisitImplicitCode() const override { return true; }

  /// Without the iterators that nobody wrote.
  bool TraverseCXXForRangeStmt(clang::CXXForRangeStmt* loop) override {
    return TraverseStmt(loop->getRangeInit()) && TraverseStmt(loop->getBody());
  }

  bool VisitImplicitCastExpr(clang::ImplicitCastExpr* cast) override {
    if (cast->getCastKind() == clang::CK_LValueToRValue) {
      wrap_access(cast->getSubExpr(), "read");
    }
    return go_on();
  }

  bool VisitBinaryOperator(clang::BinaryOperator* operation) override {
    if (operation->isTypeDependent()) {
      return true;
    }
    const bool floating = operation->getType()->isRealFloatingType();
    if (operation->isAssignmentOp()) {
      wrap_access(operation->getLHS(), operation->isCompoundAssignmentOp() ? "update" : "write");
    }
    if (floating && (operation->isAdditiveOp() || operation->getOpcode() == clang::BO_Mul)) {
      wrap_operation(operation, Layer::Operation);
    }
    if (floating && (operation->getOpcode() == clang::BO_AddAssign ||
                     operation->getOpcode() == clang::BO_SubAssign ||
                     operation->getOpcode() == clang::BO_MulAssign)) {
      wrap_operation(operation->getRHS(), Layer::Assignment);
    }
    return go_on();
  }

  bool VisitUnaryOperator(clang::UnaryOperator* operation) override {
    if (operation->isIncrementDecrementOp()) {
      wrap_access(operation->getSubExpr(), "update");
    }
    return go_on();
  }

  /// Whole structs, float4 among them, are copied without a conversion from lvalue to value.
  bool VisitCXXOperatorCallExpr(clang::CXXOperatorCallExpr* call) override {
    const auto* method = dyn_cast_or_null<clang::CXXMethodDecl>(call->getDirectCallee());
    if (method != nullptr && method->isTrivial() &&
        (method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator())) {
      wrap_access(call->getArg(0), "write");
      wrap_access(call->getArg(1), "read");
    }
    return go_on();
  }

  bool VisitCXXConstructExpr(clang::CXXConstructExpr* construction) override {
    if (construction->getConstructor()->isCopyOrMoveConstructor() &&
        construction->getConstructor()->isTrivial()) {
      wrap_access(construction->getArg(0), "read");
    }
    return go_on();
  }

  bool VisitArraySubscriptExpr(clang::ArraySubscriptExpr* subscript) override {
    const Expr* array = subscript->isTypeDependent() ? nullptr : subscripted_array(*subscript);
    if (array != nullptr && array->getType()->isConstantArrayType() && is_private(array) &&
        subscript->getLHS() == subscript->getBase()) {
      wrap_element(*subscript);
    }
    return go_on();
  }

  bool VisitCallExpr(clang::CallExpr* call) override {
    const clang::FunctionDecl* callee = call->getDirectCallee();
    if (callee == nullptr || callee->getIdentifier() == nullptr) {
      return go_on();
    }
    const std::string_view name(callee->getName().data(), callee->getName().size());
    const bool written = lowering_.written(callee->getSourceRange()).has_value();
    if (written ? takes_caller(*callee) : contains(with_site, name)) {
      append_sites(*call, {call->getSourceRange()});
    } else if (!written && name == "__pipeline_memcpy_async") {
      append_sites(*call, {call->getArg(0)->getSourceRange(), call->getArg(1)->getSourceRange()});
    }
    return go_on();
  }

  bool VisitDeclStmt(clang::DeclStmt* statement) override {
    const auto is_shared = [](const clang::Decl* declaration) {
      return declaration->hasAttr<clang::CUDASharedAttr>();
    };
    if (std::any_of(statement->decl_begin(), statement->decl_end(), is_shared)) {
      declare_shared(*statement);
    }
    return go_on();
  }

  bool VisitDeclRefExpr(clang::DeclRefExpr* name) override {
    const auto* variable = dyn_cast<clang::VarDecl>(name->getDecl());
    if (variable != nullptr && !variable->isLocalVarDeclOrParm() &&
        lowering_.written(variable->getSourceRange())) {
      if (variable->hasAttr<clang::CUDASharedAttr>()) {
        lowering_.fail(name->getBeginLoc(), "a __shared__ variable outside a function");
      } else if (!variable->getType().isConstQualified() &&
                 variable->hasAttr<clang::CUDADeviceAttr>()) {
        lowering_.fail(name->getBeginLoc(), "a __device__ variable");
      }
    }
    return go_on();
  }

  bool VisitGCCAsmStmt(clang::GCCAsmStmt* assembly) override {
    if (const PtxInstruction* instruction = ptx_instruction(*assembly)) {
      call_instruction(*assembly, *instruction);
    } else {
      lowering_.fail(assembly->getBeginLoc(), "inline assembly");
    }
    return go_on();
  }

private:
  bool go_on() const { return !lowering_.failed(); }

  void wrap_access(const Expr* place, const char* function) {
    place = place->IgnoreParens();
    if (place->isTypeDependent() || is_private(place) || place->refersToBitField()) {
      return;
    }
    const auto span = lowering_.written(place->getSourceRange());
    if (!span) {
      lowering_.fail(place->getBeginLoc(), "a memory access in the body of a macro");
      return;
    }
    lowering_.note_element_size(
        lowering_.kernel().ast().getTypeSizeInChars(place->getType()).getQuantity());
    lowering_.wraps().wrap(*span, Layer::Access, fmt::format("evo_gpu::{}(", function),
                           fmt::format(", {})", lowering_.site(*span)));
  }

  /// Counts one operation; one in a macro's body is not counted.
  void wrap_operation(const Expr* value, Layer layer) {
    if (const auto span = lowering_.written(value->getSourceRange())) {
      lowering_.wraps().wrap(*span, layer, "evo_gpu::flop(", ")");
    }
  }

  /// array[index] to evo_gpu::at(array, index, site); in a macro's body it stays as it is.
  void wrap_element(const clang::ArraySubscriptExpr& subscript) {
    const clang::ASTContext& ast = lowering_.kernel().ast();
    const auto bracket = clang::Lexer::findNextToken(subscript.getLHS()->getEndLoc(),
                                                     ast.getSourceManager(), ast.getLangOpts());
    const auto span = lowering_.written(subscript.getSourceRange());
    if (!span || subscript.getRBracketLoc().isMacroID() || !bracket ||
        !bracket->is(clang::tok::l_square)) {
      return;
    }
    lowering_.wraps().wrap(*span, Layer::Element, "evo_gpu::at(", "");
    lowering_.wraps().replace(*lowering_.written(bracket->getLocation()), ", ");
    lowering_.wraps().replace(*lowering_.written(subscript.getRBracketLoc()),
                              fmt::format(", {})", lowering_.site(*span)));
  }

  /// Adds the numbers of sites to a call's arguments.
  void append_sites(const clang::CallExpr& call, const std::vector<clang::SourceRange>& sites) {
    std::string arguments;
    const auto end = lowering_.written(call.getRParenLoc());
    for (const clang::SourceRange& site : sites) {
      const auto span = lowering_.written(site);
      if (!span || !end) {
        lowering_.fail(call.getBeginLoc(), "a barrier or memory access in the body of a macro");
        return;
      }
      const bool first = arguments.empty() && call.getNumArgs() == 0;
      arguments += fmt::format("{}{}", first ? "" : ", ", lowering_.site(*span));
    }
    lowering_.wraps().replace(*end, arguments + ")");
  }

  void add_caller() {
    for (const clang::FunctionDecl* declaration : function_.redecls()) {
      const clang::FunctionTypeLoc type = declaration->getFunctionTypeLoc();
      const auto end = type ? lowering_.written(type.getRParenLoc()) : std::nullopt;
      if (!end) {
        lowering_.fail(declaration->getLocation(), "a function with assembly made by a macro");
        return;
      }
      lowering_.wraps().replace(
          *end, fmt::format("{}int {})", declaration->param_empty() ? "" : ", ", caller));
    }
  }

  /// The statement becomes a call of the runtime, with the operands where they are.
  void call_instruction(const clang::GCCAsmStmt& assembly, const PtxInstruction& instruction) {
    std::vector<const Expr*> operands;
    for (unsigned i = 0; i < assembly.getNumOutputs(); ++i) {
      operands.push_back(assembly.getOutputExpr(i));
      wrap_access(operands.back(), assembly.isOutputPlusConstraint(i) ? "update" : "write");
    }
    for (unsigned i = 0; i < assembly.getNumInputs(); ++i) {
      operands.push_back(assembly.getInputExpr(i));
    }
    const auto whole = lowering_.written(assembly.getSourceRange());
    if (!whole) {
      lowering_.fail(assembly.getBeginLoc(), "assembly in the body of a macro");
      return;
    }
    unsigned done = whole->begin;
    std::string text = fmt::format("evo_gpu::ptx::{}(", instruction.name);
    for (const Expr* operand : operands) {
      const auto span = lowering_.written(operand->getSourceRange());
      if (!span) {
        lowering_.fail(operand->getBeginLoc(), "assembly in the body of a macro");
        return;
      }
      lowering_.wraps().replace({done, span->begin}, text);
      done = span->end;
      text = ", ";
    }
    const std::string site =
        takes_caller(function_) ? std::string(caller) : std::to_string(lowering_.site(*whole));
    lowering_.wraps().replace({done, whole->end}, fmt::format(", {})", site));
  }

  /// The declaration becomes a struct's, so that its types and bounds may be written in any way;
  /// the names become references into the block's memory.
  void declare_shared(const clang::DeclStmt& statement) {
    const auto span = lowering_.written(statement.getSourceRange());
    if (!span) {
      lowering_.fail(statement.getBeginLoc(), "a __shared__ declaration in the body of a macro");
      return;
    }
    const int site = lowering_.site(*span);
    std::string members = without_storage(lowering_.text(*span));
    std::string names;
    for (const clang::Decl* declaration : statement.decls()) {
      const auto* variable = llvm::cast<clang::VarDecl>(declaration);
      const std::string name = variable->getNameAsString();
      if (variable->hasExternalStorage()) {
        const std::size_t bound = members.find("[]");
        if (bound == std::string::npos) {
          lowering_.fail(variable->getLocation(), "extern __shared__ memory that is not an array");
          return;
        }
        members.insert(bound + 1, "1");
        names += fmt::format(
            " auto *const {0} = evo_gpu::dynamic_shared<evo_shared_{1}>(\"{0}\").{0};", name, site);
      } else {
        names += fmt::format(" auto &{0} = evo_gpu::shared<evo_shared_{1}>(\"{0}\", {1}).{0};",
                             name, site);
      }
    }
    lowering_.wraps().replace(
        *span, fmt::format("struct evo_shared_{} {{ {} }};{}", site, members, names));
  }

  Lowering& lowering_;
  const clang::FunctionDecl& function_;
};

} // namespace

void lower_device_code(Lowering& lowering, clang::FunctionDecl& function) {
  DeviceCode(lowering, function).run();
}

} // namespace evo::cpu
