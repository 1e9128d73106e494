#include "mutators/warp_product.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/syntax_visitor.hpp"
#include "mutators/filled_in.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

// $name stands for a text of the kernel's.
constexpr std::string_view product_text = R"(for ($k_type $k = 0; $k < $k_limit; $k += $step) {
  unsigned $right_parts[$columns / 2][$parts][2];
#pragma unroll
  for (int $j = 0; $j < $columns; $j += 2) {
#pragma unroll
    for (int $slot = 0; $slot < 2; ++$slot) {
      const int $depth = $k + $slot * $depth_half + $lane % 4$lane_numbers;
      $split_right
    }
  }
#pragma unroll
  for (int $i = 0; $i < $rows; $i += 2) {
    unsigned $left_parts[$parts][4];
#pragma unroll
    for (int $slot = 0; $slot < 4; ++$slot) {
      const int $depth = $k + $slot / 2 * $depth_half + $lane % 4$lane_numbers;
      $split_left
    }
#pragma unroll
    for (int $order = $parts - 1; $order >= 0; --$order) {
#pragma unroll
      for (int $part = 0; $part <= $order; ++$part) {
#pragma unroll
        for (int $j = 0; $j < $columns; $j += 2) {
          float $tile[4] = {$sum[$i][$j], $sum[$i][$j + 1], $sum[$i + 1][$j], $sum[$i + 1][$j + 1]};
          $multiply($tile, $left_parts[$order - $part], $right_parts[$j / 2][$part]);
          $sum[$i][$j] = $tile[0];
          $sum[$i][$j + 1] = $tile[1];
          $sum[$i + 1][$j] = $tile[2];
          $sum[$i + 1][$j + 1] = $tile[3];
        }
      }
    }
  }
})";

constexpr std::string_view split_pair = R"(float $low = $load;
float $high = $next_load;
#pragma unroll
for (int $part = 0; $part < $parts; ++$part) {
  $register = $round($low, $high);
  $low -= $take_low($register);
  $high -= $take_high($register);
})";

constexpr std::string_view split_one = R"(float $low = $load;
#pragma unroll
for (int $part = 0; $part < $parts; ++$part) {
  $register = $round($low);
  $low -= $take_low($register);
})";

class OperandReferences : public SyntaxVisitor {
public:
  bool VisitDeclRefExpr(clang::DeclRefExpr* reference) override {
    found.push_back(reference);
    return true;
  }
  std::vector<const clang::DeclRefExpr*> found;
};

using Coordinates = std::map<const clang::ValueDecl*, std::string>; // and what replaces them

bool is_whole_index(const Kernel& kernel, const clang::Expr& reference) {
  const clang::Stmt* parent = parent_of(kernel, reference);
  const auto* cast = clang::dyn_cast_or_null<clang::ImplicitCastExpr>(parent);
  const auto* place = clang::dyn_cast_or_null<clang::ArraySubscriptExpr>(
      cast != nullptr ? parent_of(kernel, *cast) : parent);
  return place != nullptr && place->getIdx()->IgnoreParenImpCasts() == &reference;
}

/// A load with other coordinates.
std::optional<std::string> load_at(const Kernel& kernel, const clang::Expr& load,
                                   const Coordinates& coordinates) {
  OperandReferences references;
  references.TraverseStmt(const_cast<clang::Expr*>(&load));
  std::vector<Edit> edits;
  for (const clang::DeclRefExpr* reference : references.found) {
    const auto span = span_of(kernel, reference->getSourceRange());
    const auto coordinate = coordinates.find(reference->getDecl());
    if (!span) {
      return std::nullopt;
    }
    if (coordinate != coordinates.end()) {
      const bool plain =
          coordinate->second.find(' ') == std::string::npos || is_whole_index(kernel, *reference);
      edits.push_back({span->begin, span->length(),
                       plain ? coordinate->second : "(" + coordinate->second + ")"});
    }
  }
  sort_edits(edits);
  const auto span = span_of(kernel, load.getSourceRange());
  return span ? std::optional(render(kernel, *span, edits)) : std::nullopt;
}

class WarpProduct {
public:
  WarpProduct(const Kernel& kernel, const ProductCore& core, const clang::VarDecl& column,
              const TensorType& type, const WarpProductNames& names)
      : kernel_(kernel), core_(core), column_(column), type_(type), names_(names) {}

  std::optional<std::string> text() {
    const CountedLoop& k = core_.k.counted;
    const auto limit = operand(kernel_, *k.limit, Binding::Sum);
    const auto rows = operand(kernel_, *core_.rows.limit, Binding::Product);
    const auto columns = operand(kernel_, *core_.columns.limit, Binding::Product);
    const std::string i = core_.rows.counter->getNameAsString();
    const std::string j = core_.columns.counter->getNameAsString();
    const auto left = split(core_.left, {{core_.left.counter, i + " + " + names_.slot + " % 2"}},
                            names_.left_parts + "[" + names_.part + "][" + names_.slot + "]");
    const auto right =
        split(core_.right, {{core_.right.counter, j}, {&column_, names_.fragment_column}},
              names_.right_parts + "[" + j + " / 2][" + names_.part + "][" + names_.slot + "]");
    if (!limit || !rows || !columns || !left || !right) {
      return std::nullopt;
    }
    return filled_in(product_text,
                     {{"k_type", k.counter->getType().getUnqualifiedType().getAsString()},
                      {"k", k.counter->getNameAsString()},
                      {"k_limit", *limit},
                      {"step", std::to_string(type_.depth)},
                      {"depth_half", std::to_string(type_.depth / 2)},
                      {"lane_numbers", type_.numbers == 1 ? "" : " * 2"},
                      {"rows", *rows},
                      {"columns", *columns},
                      {"i", i},
                      {"j", j},
                      {"sum", core_.sum->getNameAsString()},
                      {"split_left", *left},
                      {"split_right", *right},
                      {"left_parts", names_.left_parts},
                      {"right_parts", names_.right_parts},
                      {"parts", names_.parts},
                      {"part", names_.part},
                      {"order", names_.order},
                      {"slot", names_.slot},
                      {"depth", names_.depth},
                      {"lane", names_.lane},
                      {"tile", names_.tile},
                      {"multiply", names_.multiply}});
  }

private:
  /// The factor's numbers in one register, in parts.
  std::optional<std::string> split(const Factor& factor, Coordinates coordinates,
                                   const std::string& place) const {
    std::string& k = coordinates[core_.k.counted.counter];
    k = names_.depth;
    const auto load = load_at(kernel_, *factor.load, coordinates);
    k = names_.depth + " + 1";
    const auto next = load_at(kernel_, *factor.load, coordinates);
    if (!load || !next) {
      return std::nullopt;
    }
    return filled_in(type_.numbers == 1 ? split_one : split_pair,
                     {{"load", *load},
                      {"next_load", *next},
                      {"register", place},
                      {"low", names_.low},
                      {"high", names_.high},
                      {"part", names_.part},
                      {"parts", names_.parts},
                      {"round", names_.round},
                      {"take_low", names_.take_low},
                      {"take_high", names_.take_high}});
  }

  const Kernel& kernel_;
  const ProductCore& core_;
  const clang::VarDecl& column_;
  const TensorType& type_;
  const WarpProductNames& names_;
};

} // namespace

std::optional<std::string> warp_product(const Kernel& kernel, const ProductCore& core,
                                        const clang::VarDecl& column, const TensorType& type,
                                        const WarpProductNames& names) {
  return WarpProduct(kernel, core, column, type, names).text();
}

} // namespace evo
