// What pointers may be used for besides access.
#pragma once

#include <optional>

#include "fitness/policy/finding.hpp"

namespace clang {
class ASTContext;
class DeclRefExpr;
class Expr;
class FieldDecl;
} // namespace clang

namespace evo::policy {

/// Nobody forges a pointer to a function. In host code a pointer's value answers only whether it is
/// null or aligned, so that a launcher cannot know its inputs again; and a number becomes a pointer
/// only where it was one before.
std::optional<Finding> check_pointer(const clang::Expr& expression, bool on_host,
                                     const clang::ASTContext& ast);

/// A constant in device code is read element by element and never by address: it lies in memory
/// that a kernel could write, all but a __constant__ one.
std::optional<Finding> check_device_constant(const clang::DeclRefExpr& name,
                                             const clang::ASTContext& ast);

/// No member points to a function, and no member of a union is a pointer.
std::optional<Finding> check_pointer_member(const clang::FieldDecl& field);

} // namespace evo::policy
