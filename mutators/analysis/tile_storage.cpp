#include "mutators/analysis/tile_storage.hpp"

#include <algorithm>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>

#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/references.hpp"

namespace evo {
namespace {

using clang::dyn_cast;

/// What a block may use without opting in to more.
constexpr std::int64_t default_shared_bytes = 48 * 1024;

bool is_dynamic(const clang::VarDecl* variable) {
  return variable->hasExternalStorage() && variable->getType()->isIncompleteType();
}

/// The kernel's accesses to shared memory, tiles or not.
std::vector<MemoryAccess> shared_accesses(const clang::FunctionDecl& kernel) {
  std::vector<MemoryAccess> result = accesses_of(*kernel.getBody()).list;
  std::erase_if(result,
                [](const MemoryAccess& access) { return access.memory.space != Space::Shared; });
  return result;
}

std::int64_t bytes_of(const Kernel& kernel, clang::QualType type) {
  return kernel.ast().getTypeSizeInChars(type).getQuantity();
}

/// Whether the one mention of the dynamic memory is `*reinterpret_cast<Record*>(memory)` as the
/// initialiser of a variable, or the pointer itself.
bool is_only_a_view(const clang::Stmt* statement, const clang::VarDecl* memory,
                    const clang::RecordDecl* record) {
  if (const auto* definition = dyn_cast<clang::DeclStmt>(statement)) {
    for (const clang::Decl* decl : definition->decls()) {
      const auto* variable = dyn_cast<clang::VarDecl>(decl);
      if (variable == nullptr || !variable->hasInit() || !mentions(*variable->getInit(), *memory)) {
        continue;
      }
      const clang::Expr* view = variable->getInit()->IgnoreParenCasts();
      if (const auto* unary = dyn_cast<clang::UnaryOperator>(view)) {
        view =
            unary->getOpcode() == clang::UO_Deref ? unary->getSubExpr()->IgnoreParenCasts() : view;
      }
      const clang::QualType type =
          variable->getType()->isReferenceType() || variable->getType()->isPointerType()
              ? variable->getType()->getPointeeType()
              : variable->getType();
      return clang::isa<clang::DeclRefExpr>(view) && type->getAsRecordDecl() == record;
    }
  }
  return std::ranges::any_of(statement->children(), [&](const clang::Stmt* child) {
    return child != nullptr && is_only_a_view(child, memory, record);
  });
}

std::size_t mention_count(const clang::Stmt* statement, const clang::VarDecl* variable) {
  if (statement == nullptr) {
    return 0;
  }
  const auto* reference = dyn_cast<clang::DeclRefExpr>(statement);
  std::size_t count = reference != nullptr && reference->getDecl() == variable ? 1 : 0;
  for (const clang::Stmt* child : statement->children()) {
    count += mention_count(child, variable);
  }
  return count;
}

std::int64_t static_bytes_of(const Kernel& kernel, const std::vector<MemoryAccess>& shared) {
  std::set<const clang::VarDecl*> counted;
  std::int64_t bytes = 0;
  for (const MemoryAccess& access : shared) {
    const clang::VarDecl* variable = access.memory.variable;
    if (!is_dynamic(variable) && counted.insert(variable).second) {
      bytes += bytes_of(kernel, variable->getType());
    }
  }
  return bytes;
}

/// The strictest alignment of what an lvalue or pointer goes through, casts included; not of the
/// indices.
std::int64_t alignment_of(const Kernel& kernel, const clang::Stmt* place) {
  const auto* expr = dyn_cast<clang::Expr>(place);
  if (expr == nullptr || (!expr->isGLValue() && !expr->getType()->isPointerType())) {
    return 1;
  }
  const clang::QualType touched =
      expr->isGLValue() ? expr->getType() : expr->getType()->getPointeeType();
  std::int64_t strictest = touched->isIncompleteType() || touched->isAnyPointerType()
                               ? 1
                               : kernel.ast().getTypeAlignInChars(touched).getQuantity();
  for (const clang::Stmt* child : place->children()) {
    strictest = std::max(strictest, alignment_of(kernel, child));
  }
  return strictest;
}

/// A float4 access needs 16 bytes' alignment, whatever the tile is declared as.
std::int64_t alignment_of(const Kernel& kernel, const std::vector<MemoryAccess>& shared) {
  std::int64_t strictest = 1;
  for (const MemoryAccess& access : shared) {
    if (access.place != nullptr) {
      strictest = std::max(strictest, alignment_of(kernel, access.place));
    }
  }
  return strictest;
}

/// Whether every access to the memory block of the tiles goes through a member of their struct.
bool only_members(const TileStorage& storage, const clang::VarDecl* block,
                  const std::vector<MemoryAccess>& shared) {
  return std::ranges::all_of(shared, [&](const MemoryAccess& access) {
    const Memory& memory = access.memory;
    const bool same_block =
        memory.variable == block || (storage.dynamic && is_dynamic(memory.variable));
    return !same_block || (memory.variable == block && memory.member != nullptr &&
                           memory.member->getParent() == storage.record);
  });
}

/// sizeof(record), a constant initialised with it, or a sum with it and nothing negative.
bool follows_size(const Kernel& kernel, const clang::Expr* expr, const clang::RecordDecl* record) {
  expr = expr->IgnoreParenCasts();
  if (const auto* trait = dyn_cast<clang::UnaryExprOrTypeTraitExpr>(expr)) {
    return trait->getKind() == clang::UETT_SizeOf &&
           trait->getTypeOfArgument().getNonReferenceType()->getAsRecordDecl() == record;
  }
  if (const auto* reference = dyn_cast<clang::DeclRefExpr>(expr)) {
    const auto* constant = dyn_cast<clang::VarDecl>(reference->getDecl());
    return constant != nullptr && constant->getType().isConstQualified() && constant->hasInit() &&
           follows_size(kernel, constant->getInit(), record);
  }
  const auto* sum = dyn_cast<clang::BinaryOperator>(expr);
  if (sum == nullptr || sum->getOpcode() != clang::BO_Add) {
    return false;
  }
  const auto with = [&](const clang::Expr* size, const clang::Expr* rest) {
    return follows_size(kernel, size, record) && constant_value(kernel, *rest).value_or(-1) >= 0;
  };
  return with(sum->getLHS(), sum->getRHS()) || with(sum->getRHS(), sum->getLHS());
}

/// Whether the entry raises the kernel's limit to the struct's size.
bool opts_in(const Kernel& kernel, const clang::FunctionDecl& function,
             const clang::RecordDecl* record) {
  return std::ranges::any_of(attribute_calls(kernel, function), [&](const clang::CallExpr* call) {
    return follows_size(kernel, call->getArg(2), record);
  });
}

} // namespace

std::optional<TileStorage> find_tile_storage(const Kernel& kernel, const Stages& stages) {
  if (stages.tiles.empty()) {
    return std::nullopt;
  }
  const std::vector<MemoryAccess> shared = shared_accesses(*stages.kernel);
  const clang::VarDecl* block = stages.tiles.front().variable;
  const auto record_of = [](const Memory& tile) {
    return tile.member == nullptr ? nullptr : tile.member->getParent();
  };
  TileStorage storage{.tiles = {},
                      .record = record_of(stages.tiles.front()),
                      .dynamic = is_dynamic(block),
                      .static_bytes = static_bytes_of(kernel, shared),
                      .alignment = alignment_of(kernel, shared)};
  for (const Memory& tile : stages.tiles) {
    if (record_of(tile) != storage.record ||
        (tile.variable != block && (storage.record != nullptr || is_dynamic(tile.variable)))) {
      return std::nullopt;
    }
    storage.tiles.push_back(
        tile.member == nullptr ? static_cast<const clang::ValueDecl*>(tile.variable) : tile.member);
  }
  if (storage.record != nullptr &&
      (storage.record->isUnion() || !only_members(storage, block, shared))) {
    return std::nullopt;
  }
  const clang::Stmt* body = stages.kernel->getBody();
  const bool reached_by_name =
      !storage.dynamic || (storage.record != nullptr && mention_count(body, block) == 1 &&
                           is_only_a_view(body, block, storage.record));
  return reached_by_name ? std::optional(storage) : std::nullopt;
}

bool can_grow(const Kernel& kernel, const clang::FunctionDecl& function, const TileStorage& storage,
              std::int64_t more_bytes) {
  if (!storage.dynamic) {
    return storage.static_bytes + more_bytes <= default_shared_bytes;
  }
  const std::int64_t dynamic_bytes =
      bytes_of(kernel, kernel.ast().getRecordType(storage.record)) + more_bytes;
  std::vector<Launch> launches = find_launches(kernel);
  std::erase_if(launches, [&](const Launch& launch) { return launch.kernel != &function; });
  const bool follows = std::ranges::all_of(launches, [&](const Launch& launch) {
    return launch.shared_bytes != nullptr &&
           follows_size(kernel, launch.shared_bytes, storage.record);
  });
  return !launches.empty() && follows &&
         storage.static_bytes + dynamic_bytes <= kernel.target().shared_bytes_per_block &&
         (dynamic_bytes <= default_shared_bytes || opts_in(kernel, function, storage.record));
}

bool can_hold(const Kernel& kernel, const Stages& stages, const TileStorage& storage, int times) {
  std::int64_t more = 0;
  for (const clang::ValueDecl* tile : storage.tiles) {
    const std::int64_t bytes = bytes_of(kernel, tile->getType());
    if (bytes % storage.alignment != 0) {
      return false;
    }
    more += (times - 1) * bytes;
  }
  return can_grow(kernel, *stages.kernel, storage, more);
}

} // namespace evo
