#include "mutators/analysis/loops.hpp"

#include <algorithm>
#include <map>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

class LoopCollector : public SyntaxVisitor {
public:
  explicit LoopCollector(const Kernel& kernel) : kernel_(kernel) {}

  bool TraverseFunctionDecl(clang::FunctionDecl* function) override {
    const bool device =
        function->hasAttr<clang::CUDAGlobalAttr>() || function->hasAttr<clang::CUDADeviceAttr>();
    const clang::SourceManager& sources = kernel_.ast().getSourceManager();
    if (!device || !sources.isInMainFile(function->getLocation())) {
      return true;
    }
    function_ = function;
    return SyntaxVisitor::TraverseFunctionDecl(function);
  }

  bool VisitAttributedStmt(clang::AttributedStmt* statement) override {
    const auto attributes = statement->getAttrs();
    attributes_[statement->getSubStmt()].assign(attributes.begin(), attributes.end());
    return true;
  }

  bool VisitForStmt(clang::ForStmt* loop) override {
    const auto counted = counted_loop(kernel_, *loop);
    if (counted && span_of(kernel_, *loop)) {
      loops.push_back({*counted, function_, attributes_[loop], name(*counted->counter)});
    }
    return true;
  }

  std::vector<DeviceLoop> loops;

private:
  std::string name(const clang::VarDecl& counter) {
    const std::string plain = function_->getNameAsString() + "/" + counter.getNameAsString();
    const int ordinal = ++named_[plain];
    return ordinal == 1 ? plain : plain + "#" + std::to_string(ordinal);
  }

  const Kernel& kernel_;
  const clang::FunctionDecl* function_ = nullptr;
  std::map<const clang::Stmt*, std::vector<const clang::Attr*>> attributes_;
  std::map<std::string, int> named_;
};

/// The first of a loop and the pragmas before it.
std::optional<unsigned> begin_of(const Kernel& kernel, const clang::Stmt& loop,
                                 llvm::ArrayRef<const clang::Attr*> pragmas) {
  const auto span = span_of(kernel, loop);
  std::optional<unsigned> begin = span ? std::optional(span->begin) : std::nullopt;
  for (const clang::Attr* pragma : pragmas) {
    const auto line = pragma_line(kernel, *pragma);
    begin = begin && line ? std::optional(std::min(*begin, line->begin)) : std::nullopt;
  }
  return begin;
}

bool encloses(const DeviceLoop& outer, const DeviceLoop& inner) {
  const clang::SourceRange body = outer.counted.loop->getBody()->getSourceRange();
  return body.fullyContains(inner.counted.loop->getSourceRange());
}

} // namespace

std::vector<DeviceLoop> device_loops(const Kernel& kernel) {
  LoopCollector collector(kernel);
  collector.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  return std::move(collector.loops);
}

const DeviceLoop* find_loop(const std::vector<DeviceLoop>& loops, const clang::ForStmt& loop) {
  const auto found =
      std::ranges::find(loops, &loop, [](const DeviceLoop& known) { return known.counted.loop; });
  return found == loops.end() ? nullptr : &*found;
}

std::optional<std::int64_t> trip_count(const Kernel& kernel, const CountedLoop& loop) {
  const auto start = constant_value(kernel, *loop.start);
  const auto limit = constant_value(kernel, *loop.limit);
  if (!start || !limit) {
    return std::nullopt;
  }
  return std::max<std::int64_t>(0, (*limit - *start + loop.step_value - 1) / loop.step_value);
}

std::int64_t inner_copies(const Kernel& kernel, const DeviceLoop& outer,
                          const std::vector<DeviceLoop>& loops) {
  std::int64_t most = 1;
  for (const DeviceLoop& inner : loops) {
    if (encloses(outer, inner)) {
      most = std::max(most, trip_count(kernel, inner.counted).value_or(1) *
                                inner_copies(kernel, inner, loops));
    }
  }
  return most;
}

std::optional<unsigned> begin_of(const Kernel& kernel, const DeviceLoop& loop) {
  return begin_of(kernel, *loop.counted.loop, loop.attributes);
}

std::optional<unsigned> begin_of(const Kernel& kernel, const clang::Stmt& loop) {
  const auto* attributed = clang::dyn_cast<clang::AttributedStmt>(&loop);
  return attributed == nullptr
             ? begin_of(kernel, loop, {})
             : begin_of(kernel, *attributed->getSubStmt(), attributed->getAttrs());
}

} // namespace evo
