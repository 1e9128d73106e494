// Sizes and offsets of types when the constants in their extents have other values than the
// compiler folded into them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace clang {
class ASTContext;
class Expr;
class FieldDecl;
class QualType;
class RecordDecl;
class TypeLoc;
class ValueDecl;
} // namespace clang

namespace evo {

struct Layout {
  enum class Kind { Scalar, Array, Record };
  Kind kind = Kind::Scalar;
  std::int64_t bytes = 0;
  std::int64_t align = 1;
  std::int64_t count = -1;               // Array: -1 for `extern __shared__ float a[]`
  std::shared_ptr<const Layout> element; // Array
  std::map<const clang::FieldDecl*, std::pair<std::int64_t, std::shared_ptr<const Layout>>>
      fields; // Record: offset in bytes and layout
};
using LayoutPtr = std::shared_ptr<const Layout>;

/// Lays out types as they are written, with array extents from `evaluate`. Throws Failure (see
/// evaluator.hpp) for a union, a base class, a bit field, and for a type whose extents are no
/// longer written anywhere (a template argument) while `hypothetical`.
class LayoutBuilder {
public:
  LayoutBuilder(const clang::ASTContext& ast, bool hypothetical,
                std::function<std::int64_t(const clang::Expr&)> evaluate);

  LayoutPtr of(const clang::ValueDecl& declaration);
  LayoutPtr of(clang::TypeLoc written);
  LayoutPtr of(clang::QualType type);

private:
  LayoutPtr record(const clang::RecordDecl& declaration);

  const clang::ASTContext& ast_;
  bool hypothetical_;
  std::function<std::int64_t(const clang::Expr&)> evaluate_;
  std::map<const clang::RecordDecl*, LayoutPtr> records_;
};

} // namespace evo
