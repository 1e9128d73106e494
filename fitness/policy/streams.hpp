// Where a stream comes from.
#pragma once

#include <optional>

#include "fitness/policy/finding.hpp"

namespace clang {
class Expr;
class FieldDecl;
class QualType;
class VarDecl;
} // namespace clang

namespace evo::policy {

/// A stream may only be named: a parameter, or a variable made from one. Then every stream is the
/// one that the entry was given, since nothing makes another: no cast, no null, no default
/// argument, no member, no element, no pointer to one.
std::optional<Finding> check_stream(const clang::Expr& expression);
std::optional<Finding> check_stream(const clang::VarDecl& variable);
std::optional<Finding> check_stream(const clang::FieldDecl& field);

} // namespace evo::policy
