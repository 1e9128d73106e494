#include "mutators/analysis/tile_accesses.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/TypeLoc.h>

#include "mutators/analysis/async_copies.hpp"
#include "mutators/analysis/counted_loop.hpp"
#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/launches.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/ptx_instruction.hpp"
#include "mutators/render.hpp"
#include "mutators/target.hpp"

namespace evo {
namespace {

using clang::dyn_cast;
using clang::dyn_cast_or_null;
using clang::isa;
using llvm::isa_and_nonnull;

constexpr std::array<std::int64_t, 5> trial_sizes{67, 131, 259, 515,
                                                  1027}; // leave tiles partly full
constexpr std::int64_t even_size = 512;                  // for paths that need full tiles

/// The expressions that name a declaration.
class NamingExpressions : public SyntaxVisitor {
public:
  explicit NamingExpressions(const clang::ValueDecl& declaration) : declaration_(declaration) {}

  bool VisitDeclRefExpr(clang::DeclRefExpr* use) override { return add(use, use->getDecl()); }
  bool VisitMemberExpr(clang::MemberExpr* use) override { return add(use, use->getMemberDecl()); }
  bool TraverseUnaryExprOrTypeTraitExpr(clang::UnaryExprOrTypeTraitExpr* size) override {
    ++in_sizeof_;
    const bool result = SyntaxVisitor::TraverseUnaryExprOrTypeTraitExpr(size);
    --in_sizeof_;
    return result;
  }

  std::vector<const clang::Expr*> evaluated;
  std::vector<const clang::Expr*> in_sizeof;

private:
  bool add(const clang::Expr* use, const clang::ValueDecl* used) {
    if (used->getCanonicalDecl() == declaration_.getCanonicalDecl()) {
      (in_sizeof_ > 0 ? in_sizeof : evaluated).push_back(use);
    }
    return true;
  }

  const clang::ValueDecl& declaration_;
  int in_sizeof_ = 0;
};

NamingExpressions mentions_of(const Kernel& kernel, const clang::ValueDecl& declaration) {
  NamingExpressions found(declaration);
  found.TraverseDecl(kernel.ast().getTranslationUnitDecl());
  return found;
}

std::vector<std::int64_t> extents_of(const Kernel& kernel, const clang::ValueDecl& tile) {
  std::vector<std::int64_t> extents;
  clang::QualType type = tile.getType();
  while (const auto* array = kernel.ast().getAsConstantArrayType(type)) {
    extents.push_back(array->getSize().getSExtValue());
    type = array->getElementType();
  }
  return extents;
}

/// The expression around one, without parentheses.
const clang::Expr* around(const Kernel& kernel, const clang::Expr* expr) {
  const auto* parent = dyn_cast_or_null<clang::Expr>(parent_of(kernel, *expr));
  return isa_and_nonnull<clang::ParenExpr>(parent) ? around(kernel, parent) : parent;
}

bool is_cast(const clang::Expr* expr, std::initializer_list<clang::CastKind> kinds) {
  const auto* cast = dyn_cast_or_null<clang::CastExpr>(expr);
  return cast != nullptr && std::ranges::count(kinds, cast->getCastKind()) != 0;
}

/// The subscripts that follow a tile's name, and the outermost expression that they make.
struct Chain {
  std::vector<const clang::Expr*> indices;
  const clang::Expr* end = nullptr;
};

Chain chain_from(const Kernel& kernel, const clang::Expr* name, std::size_t most) {
  Chain chain{.indices = {}, .end = name};
  while (chain.indices.size() < most) {
    const clang::Expr* decayed = around(kernel, chain.end);
    const auto* subscript =
        is_cast(decayed, {clang::CK_ArrayToPointerDecay})
            ? dyn_cast_or_null<clang::ArraySubscriptExpr>(around(kernel, decayed))
            : nullptr;
    if (subscript == nullptr || subscript->getBase()->IgnoreParens() != decayed) {
      break;
    }
    chain.indices.push_back(subscript->getIdx());
    chain.end = subscript;
  }
  return chain;
}

/// What takes an address, from `&place` on, whatever it points to there.
const clang::Expr* user_of_pointer(const Kernel& kernel, const clang::Expr* address) {
  const clang::Expr* pointer = around(kernel, address);
  while (is_cast(pointer, {clang::CK_BitCast, clang::CK_NoOp})) {
    pointer = around(kernel, pointer);
  }
  return pointer;
}

/// *(T *)&place, from `&place` on; nullptr for another use of the address.
const clang::Expr* dereferenced(const Kernel& kernel, const clang::Expr* address) {
  const auto* unary = dyn_cast_or_null<clang::UnaryOperator>(user_of_pointer(kernel, address));
  return unary != nullptr && unary->getOpcode() == clang::UO_Deref ? unary : nullptr;
}

std::int64_t element_bytes(const Kernel& kernel, const clang::Expr& element) {
  return kernel.ast().getTypeSizeInChars(element.getType()).getQuantity();
}

/// Whether `user` reads or writes the value of `place`, and only that.
bool uses_value(const clang::Expr* user, const clang::Expr* place) {
  if (is_cast(user, {clang::CK_LValueToRValue})) {
    return true;
  }
  if (const auto* binary = dyn_cast_or_null<clang::BinaryOperator>(user)) {
    return binary->isAssignmentOp() && binary->getLHS()->IgnoreParens() == place;
  }
  if (const auto* unary = dyn_cast_or_null<clang::UnaryOperator>(user)) {
    return unary->isIncrementDecrementOp();
  }
  if (const auto* copy = dyn_cast_or_null<clang::CXXConstructExpr>(user)) {
    return copy->getConstructor()->isCopyConstructor() && copy->getConstructor()->isTrivial();
  }
  const auto* call = dyn_cast_or_null<clang::CXXOperatorCallExpr>(user);
  const auto* assignment =
      call == nullptr ? nullptr : dyn_cast_or_null<clang::CXXMethodDecl>(call->getDirectCallee());
  return assignment != nullptr && assignment->isTrivial() &&
         (assignment->isCopyAssignmentOperator() || assignment->isMoveAssignmentOperator());
}

/// The asynchronous copy that goes to an address, from `&place` on; nullptr for another use of it.
const clang::CallExpr* copied_to(const Kernel& kernel, const clang::Expr* address) {
  const auto* copy = async_copy(user_of_pointer(kernel, address));
  return copy != nullptr && copy->getArg(0)->IgnoreParenCasts() == address ? copy : nullptr;
}

/// Whether an address, from `&place` on, is what a leaf helper of ldmatrix takes for a row.
bool is_loaded_row(const Kernel& kernel, const clang::Expr* address) {
  const auto* call = dyn_cast_or_null<clang::CallExpr>(user_of_pointer(kernel, address));
  const clang::FunctionDecl* helper = call == nullptr || call->getDirectCallee() == nullptr
                                          ? nullptr
                                          : call->getDirectCallee()->getDefinition();
  const clang::GCCAsmStmt* assembly = helper == nullptr ? nullptr : assembly_in(*helper);
  const PtxInstruction* instruction = assembly == nullptr ? nullptr : ptx_instruction(*assembly);
  return instruction != nullptr && instruction->kind == PtxInstruction::Kind::LoadMatrices;
}

/// An access through a name; nullopt for any other use of it.
std::optional<TileAccess> access_through(const Kernel& kernel, const clang::Expr* name,
                                         std::size_t dimensions) {
  const Chain chain = chain_from(kernel, name, dimensions);
  if (chain.indices.size() != dimensions || !span_of(kernel, chain.end->getSourceRange())) {
    return std::nullopt;
  }
  TileAccess access{.indices = chain.indices, .wide = false, .sites = {chain.end}};
  while (true) {
    const clang::Expr* place = access.sites.back();
    const clang::Expr* user = around(kernel, place);
    const auto* address = dyn_cast_or_null<clang::UnaryOperator>(user);
    if (is_cast(user, {clang::CK_LValueBitCast})) {
      access.wide = true;
    } else if (const auto* copy = address == nullptr ? nullptr : copied_to(kernel, address)) {
      access.sites.push_back(address);
      access.wide = constant_value(kernel, *copy->getArg(2)) != element_bytes(kernel, *chain.end);
      return access;
    } else if (address != nullptr && is_loaded_row(kernel, address)) {
      access.sites.push_back(address);
      access.wide = true;
      return access;
    } else if (address != nullptr && address->getOpcode() == clang::UO_AddrOf) {
      user = dereferenced(kernel, address);
      access.wide = true;
    } else if (!is_cast(user, {clang::CK_NoOp}) &&
               (access.wide || !isa_and_nonnull<clang::MemberExpr>(user))) {
      const auto* assignment = dyn_cast_or_null<clang::CXXOperatorCallExpr>(user);
      if (assignment != nullptr && assignment->getArg(0)->IgnoreParens() == place) {
        access.sites.push_back(user); // its value is the place again
      }
      return uses_value(user, place) ? std::optional(access) : std::nullopt;
    }
    if (user == nullptr) {
      return std::nullopt;
    }
    access.sites.push_back(user);
  }
}

/// The variable that `object.member` starts from.
const clang::VarDecl* root_variable(const clang::Expr* object) {
  object = object->IgnoreParenImpCasts();
  if (const auto* subscript = dyn_cast<clang::ArraySubscriptExpr>(object)) {
    return root_variable(subscript->getBase());
  }
  const auto* reference = dyn_cast<clang::DeclRefExpr>(object);
  return reference == nullptr ? nullptr : dyn_cast<clang::VarDecl>(reference->getDecl());
}

/// Whether all that happens to a variable is `variable.member`, with `->` or a subscript too.
bool only_members(const Kernel& kernel, const clang::VarDecl& variable) {
  return std::ranges::all_of(mentions_of(kernel, variable).evaluated, [&](const clang::Expr* use) {
    const clang::Expr* user = around(kernel, use);
    while (is_cast(user, {clang::CK_LValueToRValue, clang::CK_ArrayToPointerDecay}) ||
           isa_and_nonnull<clang::ArraySubscriptExpr>(user)) {
      user = around(kernel, user);
    }
    return isa_and_nonnull<clang::MemberExpr>(user);
  });
}

/// The uses of the tile's name; nullopt when one of them is no access.
std::optional<TileAccesses> named_accesses(const Kernel& kernel,
                                           const clang::FunctionDecl& function,
                                           const clang::ValueDecl& tile) {
  TileAccesses result{.tile = &tile,
                      .extents = extents_of(kernel, tile),
                      .written_extents = written_extents(tile),
                      .list = {}};
  const std::size_t dimensions = result.extents.size();
  const NamingExpressions mentions = mentions_of(kernel, tile);
  if (dimensions < 2 || result.written_extents.size() != dimensions ||
      std::ranges::any_of(
          mentions.in_sizeof,
          [&](const clang::Expr* use) {
            return chain_from(kernel, use, dimensions).indices.size() + 1 == dimensions;
          })) {
    return std::nullopt;
  }
  std::map<const clang::VarDecl*, bool> objects;
  for (const clang::Expr* use : mentions.evaluated) {
    const auto* member = dyn_cast<clang::MemberExpr>(use);
    const clang::VarDecl* object = member == nullptr ? nullptr : root_variable(member->getBase());
    if (member != nullptr) {
      const bool own = object != nullptr && (object->getDeclContext() == &function ||
                                             object->hasAttr<clang::CUDASharedAttr>());
      const auto [known, added] = objects.try_emplace(object, own);
      if (!known->second || (added && !only_members(kernel, *object))) {
        return std::nullopt;
      }
    }
    auto access = access_through(kernel, use, dimensions);
    if (!access) {
      return std::nullopt;
    }
    result.list.push_back(std::move(*access));
  }
  return result;
}

/// What a run shows of tiles.
class TileObserver : public AccessObserver {
public:
  TileObserver(std::vector<TileAccesses>& tiles, const Evaluator& evaluator)
      : tiles_(tiles), evaluator_(evaluator), seen_(tiles.size()) {
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      seen_[i].resize(tiles[i].list.size());
      for (std::size_t j = 0; j < tiles[i].list.size(); ++j) {
        for (const clang::Expr* site : tiles[i].list[j].sites) {
          sites_[site] = {i, j};
        }
      }
    }
  }

  void access(const Access& access) override {
    const clang::ValueDecl* touched = evaluator_.arrays()[access.array].decl;
    const auto tile = std::ranges::find(tiles_, touched, &TileAccesses::tile);
    if (tile == tiles_.end()) {
      return;
    }
    const auto index = static_cast<std::size_t>(tile - tiles_.begin());
    const auto site = sites_.find(access.site->IgnoreParens());
    if (site == sites_.end() || site->second.first != index) {
      elsewhere_.push_back(touched);
      return;
    }
    seen_[index][site->second.second] = true;
    tile->widest = std::max<std::int64_t>(tile->widest, access.width);
    std::int64_t row = 0;   // of the lane before in the warp
    std::size_t warp = ~0U; // of that lane
    for (std::size_t lane = 0; lane < access.active->size(); ++lane) {
      if ((*access.active)[lane]) {
        const std::int64_t lanes_row = (*access.elements)[lane] / tile->extents.back();
        tile->a_row_per_warp &= lane / warp_size != warp || lanes_row == row;
        row = lanes_row;
        warp = lane / warp_size;
        const std::int64_t column = (*access.elements)[lane] % tile->extents.back();
        tile->columns = std::max(tile->columns, column + access.width);
        tile->aligned &= column % access.width == 0;
      }
    }
  }

  /// A segment's accesses are the same every time.
  bool repeat(int /*segment*/) override { return true; }

  bool saw_all() const {
    return std::ranges::all_of(
        seen_, [](const auto& seen) { return std::ranges::all_of(seen, std::identity{}); });
  }
  /// The tiles of which nothing is left open.
  std::vector<TileAccesses> proved() const {
    std::vector<TileAccesses> result;
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      if (std::ranges::all_of(seen_[i], std::identity{}) &&
          std::ranges::count(elsewhere_, tiles_[i].tile) == 0 &&
          tiles_[i].columns <= tiles_[i].extents.back()) {
        result.push_back(tiles_[i]);
      }
    }
    return result;
  }

private:
  std::vector<TileAccesses>& tiles_;
  const Evaluator& evaluator_;
  std::map<const clang::Expr*, std::pair<std::size_t, std::size_t>> sites_; // tile, access
  std::vector<std::vector<bool>> seen_;
  std::vector<const clang::ValueDecl*> elsewhere_;
};

using Launches = std::vector<EvaluatedLaunch>;

/// The launches of one function; empty where that is not known.
Launches launches_at(const Kernel& kernel, const EntryDims& dims,
                     const clang::FunctionDecl& function, std::int64_t size) {
  Launches launches = launches_at(kernel, dims, size);
  std::erase_if(launches, [&](const auto& launch) { return launch.launch.kernel != &function; });
  return launches;
}

/// Of the smallest problem that has a first and another last block wherever a large one has.
Launches trial_launches(const Kernel& kernel, const EntryDims& dims,
                        const clang::FunctionDecl& function) {
  const Launches large = launches_at(kernel, dims, function, trial_sizes.back());
  const auto splits = [](const EvaluatedLaunch& most, const EvaluatedLaunch& few) {
    return (few.grid.x > 1 || most.grid.x == 1) && (few.grid.y > 1 || most.grid.y == 1) &&
           (few.grid.z > 1 || most.grid.z == 1);
  };
  for (const std::int64_t size : trial_sizes) {
    Launches launches = launches_at(kernel, dims, function, size);
    if (std::ranges::equal(large, launches, splits)) {
      return launches;
    }
  }
  return large;
}

std::set<int> first_and_last(int extent) {
  return {0, extent - 1};
}

/// Runs the corner blocks; false where one cannot be followed to its end.
bool run(Evaluator& evaluator, const Launches& launches, AccessObserver& observer) {
  for (const EvaluatedLaunch& launch : launches) {
    for (const int z : first_and_last(launch.grid.z)) {
      for (const int y : first_and_last(launch.grid.y)) {
        for (const int x : first_and_last(launch.grid.x)) {
          if (evaluator.run(launch.block_at({x, y, z}), observer)) {
            return false;
          }
        }
      }
    }
  }
  return !launches.empty();
}

} // namespace

std::vector<TileAccesses> find_tile_accesses(const Kernel& kernel,
                                             const clang::FunctionDecl& function,
                                             const TileStorage& storage) {
  std::vector<TileAccesses> tiles;
  for (const clang::ValueDecl* tile : storage.tiles) {
    if (auto accesses = named_accesses(kernel, function, *tile)) {
      tiles.push_back(std::move(*accesses));
    }
  }
  const auto dims = tiles.empty() ? std::nullopt : find_dims(kernel);
  if (!dims) {
    return {};
  }
  Evaluator evaluator(kernel);
  TileObserver observer(tiles, evaluator);
  const bool followed = run(evaluator, trial_launches(kernel, *dims, function), observer) &&
                        (observer.saw_all() ||
                         run(evaluator, launches_at(kernel, *dims, function, even_size), observer));
  return followed ? observer.proved() : std::vector<TileAccesses>{};
}

} // namespace evo
