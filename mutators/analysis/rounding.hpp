// Where the compiler may round once instead of twice.
#pragma once

namespace clang {
class Expr;
class Stmt;
} // namespace clang

namespace evo {

/// Whether a value in `code` may come straight from a multiplication: nvcc then contracts it with
/// an addition that follows into one fused operation, which changes the last bit. Local variables
/// are followed through all their definitions in `code`; what cannot be followed may be a product.
bool may_be_product(const clang::Expr& value, const clang::Stmt& code);

} // namespace evo
