#include "fitness/policy/syntax.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/StmtCXX.h>
#include <clang/Basic/SourceManager.h>

#include "fitness/policy/finding.hpp"
#include "fitness/policy/names.hpp"
#include "fitness/policy/pointers.hpp"
#include "fitness/policy/ptx.hpp"
#include "fitness/policy/streams.hpp"
#include "mutators/analysis/syntax_visitor.hpp"

namespace evo::policy {
namespace {

using llvm::dyn_cast;
using llvm::isa;

constexpr std::array known_attributes{clang::attr::AlwaysInline,     clang::attr::Aligned,
                                      clang::attr::CUDAConstant,     clang::attr::CUDADevice,
                                      clang::attr::CUDAGlobal,       clang::attr::CUDAHost,
                                      clang::attr::CUDALaunchBounds, clang::attr::CUDAShared,
                                      clang::attr::FallThrough,      clang::attr::Final,
                                      clang::attr::Likely,           clang::attr::LoopHint,
                                      clang::attr::NoInline,         clang::attr::Unlikely,
                                      clang::attr::Unused,           clang::attr::WarnUnusedResult};

std::string name_of(const clang::NamedDecl& declaration) {
  return quoted(declaration.getNameAsString());
}

bool is_device_only(const clang::FunctionDecl& function) {
  return (function.hasAttr<clang::CUDADeviceAttr>() || function.hasAttr<clang::CUDAGlobalAttr>()) &&
         !function.hasAttr<clang::CUDAHostAttr>();
}

/// A static member of a class template's instantiation that nobody asked for: it is nowhere.
bool is_unused_instantiation(const clang::VarDecl& variable) {
  return variable.getInstantiatedFromStaticDataMember() != nullptr &&
         variable.getDefinition() == nullptr;
}

/// A local variable that starts with whatever its memory holds.
bool is_left_empty(const clang::VarDecl& variable) {
  if (llvm::isa<clang::ParmVarDecl>(variable) || variable.isCXXForRangeDecl() ||
      variable.getType()->isDependentType()) {
    return false;
  }
  const auto* construction = llvm::dyn_cast_or_null<clang::CXXConstructExpr>(variable.getInit());
  if (construction == nullptr) {
    return variable.getInit() == nullptr;
  }
  const clang::CXXConstructorDecl& constructor = *construction->getConstructor();
  return constructor.isDefaultConstructor() && constructor.isTrivial() &&
         !construction->requiresZeroInitialization() && !constructor.getParent()->isEmpty();
}

/// The function that is written down: a template's for an instantiation.
const clang::FunctionDecl& written(const clang::FunctionDecl& function) {
  const clang::FunctionDecl* pattern = function.getTemplateInstantiationPattern();
  return pattern != nullptr ? *pattern : function;
}

/// Visits the main file's declarations, in templates both the pattern and the instantiations, and
/// stops at the first finding.
class Rules : public SyntaxVisitor {
public:
  explicit Rules(const Kernel& kernel) : ast_(kernel.ast()), sources_(ast_.getSourceManager()) {}

  std::optional<std::string> run() {
    if (TraverseDecl(ast_.getTranslationUnitDecl())) {
      check_c_functions();
    }
    return std::move(violation_);
  }

  bool shouldVisitTemplateInstantiations() const override { return true; }
  bool shouldVisitImplicitCode() const override { return true; }

  bool TraverseDecl(clang::Decl* declaration) override {
    if (declaration == nullptr || isa<clang::TranslationUnitDecl>(declaration)) {
      return SyntaxVisitor::TraverseDecl(declaration);
    }
    auto* function = dyn_cast<clang::FunctionDecl>(declaration);
    const bool generated =
        function != nullptr && (function->isImplicit() || function->isDefaulted());
    if (generated || !in_main_file(declaration->getLocation())) {
      return true;
    }
    if (function == nullptr) {
      return SyntaxVisitor::TraverseDecl(declaration);
    }
    functions_.push_back(function);
    const bool clean = SyntaxVisitor::TraverseDecl(declaration);
    functions_.pop_back();
    return clean;
  }

  // Declarations.

  bool VisitDecl(clang::Decl* declaration) override {
    for (const clang::Attr* attribute : declaration->attrs()) {
      if (!check_attribute(*attribute)) {
        return false;
      }
    }
    return true;
  }

  bool VisitFunctionDecl(clang::FunctionDecl* function) override {
    const clang::SourceLocation place = function->getLocation();
    if (function->isExternC()) {
      c_functions_.push_back(function);
    }
    const auto* member = dyn_cast<clang::CXXMethodDecl>(function);
    if (member != nullptr && member->isVirtual()) {
      return refuse(place, "is virtual", "call functions by their names");
    }
    if (is_allocation(function->getOverloadedOperator())) {
      return refuse(place, "replaces an allocation", "keep arrays in the workspace");
    }
    if (member == nullptr && function->getIdentifier() != nullptr &&
        belongs_to_the_system(function->getName())) {
      return refuse(place, "has a name of the system's or of CUDA's", "choose another name");
    }
    const clang::FunctionTemplateDecl* primary = function->getPrimaryTemplate();
    if (provided(*function) != nullptr ||
        (primary != nullptr && !in_main_file(primary->getLocation()))) {
      return refuse(place, "is one of CUDA's functions", "choose another name");
    }
    return true;
  }

  bool VisitVarDecl(clang::VarDecl* variable) override {
    if (const auto finding = check_stream(*variable)) {
      return refuse(variable->getLocation(), *finding);
    }
    if (variable->hasLocalStorage() && is_on_host() && is_left_empty(*variable)) {
      return refuse(variable->getLocation(), "leaves " + name_of(*variable) + " without a value",
                    "initialise it, or it holds what an earlier call left");
    }
    if (!variable->hasGlobalStorage() || variable->hasAttr<clang::CUDASharedAttr>() ||
        variable->getType()->isDependentType() || is_unused_instantiation(*variable)) {
      return true;
    }
    return is_constant(*variable) ||
           refuse(variable->getLocation(), "keeps state in " + name_of(*variable),
                  "make it a constant, a local variable or a region of the workspace");
  }

  bool VisitFieldDecl(clang::FieldDecl* field) override {
    const clang::SourceLocation place = field->getLocation();
    if (field->isMutable() && !field->getParent()->isLambda()) {
      return refuse(place, "has a mutable member " + name_of(*field), "make it an ordinary one");
    }
    if (const auto finding = check_stream(*field)) {
      return refuse(place, *finding);
    }
    const auto finding = check_pointer_member(*field);
    return !finding || refuse(place, *finding);
  }

  bool VisitFileScopeAsmDecl(clang::FileScopeAsmDecl* assembly) override {
    return refuse(assembly->getLocation(), "has assembly outside of functions", "remove it");
  }

  // Names of functions, wherever they are used.

  bool VisitCUDAKernelCallExpr(clang::CUDAKernelCallExpr* call) override {
    if (call->getConfig() != nullptr) {
      configuration_callees_.insert(call->getConfig()->getCallee()->IgnoreImpCasts());
    }
    return true;
  }

  bool VisitDeclRefExpr(clang::DeclRefExpr* name) override {
    if (const auto finding = check_device_constant(*name, ast_)) {
      return refuse(name->getLocation(), *finding);
    }
    const auto* function = dyn_cast<clang::FunctionDecl>(name->getDecl());
    return function == nullptr || configuration_callees_.contains(name) ||
           check_use(*function, name->getLocation());
  }

  bool VisitMemberExpr(clang::MemberExpr* member) override {
    const auto* function = dyn_cast<clang::FunctionDecl>(member->getMemberDecl());
    return function == nullptr || check_use(*function, member->getMemberLoc());
  }

  bool VisitCXXConstructExpr(clang::CXXConstructExpr* construction) override {
    return check_use(*construction->getConstructor(), construction->getLocation());
  }

  bool VisitOverloadExpr(clang::OverloadExpr* names) override {
    for (const clang::NamedDecl* name : names->decls()) {
      const auto* function = name->getUnderlyingDecl()->getAsFunction();
      if (function != nullptr && !check_use(*function, names->getNameLoc())) {
        return false;
      }
    }
    return names->getNumDecls() != 0 ||
           refuse(names->getNameLoc(),
                  "calls " + quoted(names->getName().getAsString()) + ", which is not declared",
                  "define it before its use");
  }

  bool VisitCallExpr(clang::CallExpr* call) override {
    const bool resolved =
        call->getCalleeDecl() != nullptr && call->getCalleeDecl()->getAsFunction() != nullptr;
    if (resolved || call->isTypeDependent() || isa<clang::CUDAKernelCallExpr>(call) ||
        isa<clang::CXXPseudoDestructorExpr>(call->getCallee()->IgnoreParens())) {
      return true;
    }
    return call->getCallee()->isTypeDependent() ||
           refuse(call->getBeginLoc(), "calls through a pointer to a function",
                  "call the function by its name");
  }

  // Expressions and statements.

  bool VisitExpr(clang::Expr* expression) override {
    if (const auto finding = check_stream(*expression)) {
      return refuse(expression->getExprLoc(), *finding);
    }
    if (const auto finding = check_pointer(*expression, is_on_host(), ast_)) {
      return refuse(expression->getExprLoc(), *finding);
    }
    return true;
  }

  bool VisitCXXDefaultArgExpr(clang::CXXDefaultArgExpr* argument) override {
    return within(argument->getUsedLocation(), argument->getExpr());
  }

  bool VisitCXXDefaultInitExpr(clang::CXXDefaultInitExpr* initialiser) override {
    return within(initialiser->getUsedLocation(), initialiser->getExpr());
  }

  bool VisitCXXNewExpr(clang::CXXNewExpr* allocation) override {
    return refuse(allocation->getBeginLoc(), "allocates with new", "keep arrays in the workspace");
  }

  bool VisitCXXDeleteExpr(clang::CXXDeleteExpr* release) override {
    return refuse(release->getBeginLoc(), "calls delete", "keep arrays in the workspace");
  }

  bool VisitCXXThrowExpr(clang::CXXThrowExpr* exception) override {
    return refuse(exception->getThrowLoc(), "throws an exception", "return an error code");
  }

  bool VisitCXXTryStmt(clang::CXXTryStmt* statement) override {
    return refuse(statement->getTryLoc(), "catches exceptions", "remove the try");
  }

  bool VisitIndirectGotoStmt(clang::IndirectGotoStmt* jump) override {
    return refuse(jump->getGotoLoc(), "jumps to an address", "use a loop or a switch");
  }

  bool VisitAttributedStmt(clang::AttributedStmt* statement) override {
    return std::ranges::all_of(statement->getAttrs(), [this](const clang::Attr* attribute) {
      return check_attribute(*attribute);
    });
  }

  bool VisitAsmStmt(clang::AsmStmt* assembly) override {
    const clang::SourceLocation place = assembly->getAsmLoc();
    if (is_on_host()) {
      return refuse(place, "has inline assembly in host code", "keep it in __device__ functions");
    }
    const auto* gcc = dyn_cast<clang::GCCAsmStmt>(assembly);
    if (gcc == nullptr) {
      return refuse(place, "has assembly that is not PTX", "write asm(\"...\")");
    }
    const auto finding = ptx_violation(gcc->getAsmString()->getString());
    return !finding || refuse(place, *finding);
  }

private:
  bool is_on_host() const { return functions_.empty() || !is_device_only(*functions_.back()); }

  bool in_main_file(clang::SourceLocation place) const {
    return sources_.isInMainFile(sources_.getExpansionLoc(place));
  }

  bool refuse(clang::SourceLocation place, const Finding& finding) {
    const std::string function =
        functions_.empty() ? "" : written(*functions_.back()).getNameAsString();
    violation_ = sentence(finding, function, in_main_file(place) ? place : used_at_, sources_);
    return false;
  }

  bool refuse(clang::SourceLocation place, std::string what, std::string advice) {
    return refuse(place, Finding{std::move(what), std::move(advice)});
  }

  /// Visits an expression that is written elsewhere and used here.
  bool within(clang::SourceLocation place, clang::Expr* expression) {
    used_at_ = place;
    return TraverseStmt(expression);
  }

  static bool is_allocation(clang::OverloadedOperatorKind kind) {
    return kind == clang::OO_New || kind == clang::OO_Array_New || kind == clang::OO_Delete ||
           kind == clang::OO_Array_Delete;
  }

  bool check_attribute(const clang::Attr& attribute) {
    return attribute.isImplicit() ||
           std::ranges::find(known_attributes, attribute.getKind()) != known_attributes.end() ||
           refuse(attribute.getLocation(), "has the attribute " + quoted(attribute.getSpelling()),
                  "remove it");
  }

  /// Never written, and nothing runs to make or to destroy it.
  bool is_constant(const clang::VarDecl& variable) const {
    const clang::VarDecl* definition = variable.getDefinition();
    if (definition == nullptr) {
      definition = &variable; // a member with its value in the class
    }
    const clang::QualType type =
        ast_.getBaseElementType(definition->getType().getNonReferenceType());
    const clang::Expr* value = definition->getInit();
    return type.isConstQualified() && !type.isVolatileQualified() &&
           definition->getTLSKind() == clang::VarDecl::TLS_None &&
           !definition->needsDestruction(ast_) && value != nullptr &&
           (value->isValueDependent() || definition->hasConstantInitialization());
  }

  /// The declaration of a function that evo's headers hold, or nullptr.
  const clang::FunctionDecl* provided(const clang::FunctionDecl& function) const {
    for (const clang::FunctionDecl* declared : function.redecls()) {
      const clang::SourceLocation place = declared->getLocation();
      if (!declared->isImplicit() && place.isValid() && !in_main_file(place)) {
        return declared;
      }
    }
    return nullptr;
  }

  /// Whether the file may name `function`: its own, or one that evo's declarations hold.
  bool check_use(const clang::FunctionDecl& function, clang::SourceLocation place) {
    const std::string name = function.getNameAsString();
    const clang::FunctionDecl* declared = provided(written(function));
    bool allowed = function.isDefaulted() || written(function).isDefined();
    if (isa<clang::CXXMethodDecl>(function) && (declared != nullptr || function.isImplicit())) {
      allowed = true;
    } else if (declared != nullptr) {
      allowed = is_launcher_call(name) ||
                (declared->hasAttr<clang::CUDADeviceAttr>() && !belongs_to_the_system(name));
    } else if (function.getBuiltinID() != 0) {
      allowed = is_harmless_builtin(name);
    }
    return allowed || refuse(place,
                             "calls " + quoted(name) +
                                 ", which is neither defined in the file nor a call that "
                                 "kernels and launchers need",
                             "remove the call");
  }

  /// C linkage is for the entry and its workspace.
  void check_c_functions() {
    std::set<std::string> names;
    for (const clang::FunctionDecl* function : c_functions_) {
      names.insert(function->getNameAsString());
    }
    const auto belongs = [&](const std::string& name) {
      return names.contains(name + "_workspace") ||
             (name.ends_with("_workspace") &&
              names.contains(name.substr(0, name.size() - std::string_view("_workspace").size())));
    };
    const bool pair = names.size() == 2 && std::ranges::all_of(names, belongs);
    if (names.size() < 2 || pair) {
      return;
    }
    const auto extra = std::ranges::find_if_not(
        c_functions_, [&](const auto* function) { return belongs(function->getNameAsString()); });
    const clang::FunctionDecl& function =
        extra != c_functions_.end() ? **extra : *c_functions_.back();
    functions_.push_back(&function);
    refuse(function.getLocation(), "has C linkage",
           "only the entry and its _workspace may be extern \"C\"");
  }

  const clang::ASTContext& ast_;
  const clang::SourceManager& sources_;
  std::vector<const clang::FunctionDecl*> functions_; // from outside in
  std::vector<const clang::FunctionDecl*> c_functions_;
  std::set<const clang::Expr*> configuration_callees_;
  clang::SourceLocation used_at_;
  std::optional<std::string> violation_;
};

} // namespace

std::optional<std::string> syntax_violation(const Kernel& kernel) {
  return Rules(kernel).run();
}

} // namespace evo::policy
