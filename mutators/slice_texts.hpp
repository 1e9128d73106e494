// The CUDA that slice_operands prints: what a pass (scale_texts.hpp) makes of numbers, and what
// takes the place of the product in the kernel. Each $name is filled in (filled_in.hpp).
#pragma once

#include <string_view>

namespace evo::slice_texts {

inline constexpr std::string_view constants_text = R"(
constexpr int $slices = $count; // of a number, the highest digits first
constexpr int $products = $count * ($count + 1) / 2;
// Which slices a product is of, from the lowest four bits up.
constexpr unsigned $left_slices = $left_list;
constexpr unsigned $right_slices = $right_list;
static_assert($tile_k % $depth == 0);
)";

inline constexpr std::string_view first_panel_text =
    "(($list >> $k / $k_depth * 4 & 15) * $k_depth + $k % $k_depth) / $depth";

inline constexpr std::string_view sums_text = R"(const int $k_depth = $round_up($limit, $tile_k);
int $sums[$rows / 2][$columns / 2][4] = {};
unsigned $left_over[$rows / 2][$columns / 2] = {};
)";

inline constexpr std::string_view product_text =
    R"(for ($k_type $k = 0; $k < $k_limit; $k += $depth) {
  unsigned $right_parts[$columns / 2][2];
#pragma unroll
  for (int $pair = 0; $pair < $columns / 2; $pair += 2) {
    static_assert($columns / 2 % 2 == 0);
    unsigned $fragments[4];
    $load_matrices($fragments, &$right_tile[$k / $depth][($right_group + $pair) * 64 + $lane * 4]);
#pragma unroll
    for (int $fragment = 0; $fragment < 4; ++$fragment) {
      $right_parts[$pair + $fragment / 2][$fragment % 2] = $fragments[$fragment];
    }
  }
#pragma unroll
  for (int $i = 0; $i < $rows; $i += 2) {
    unsigned $left_parts[4];
    $load_matrices($left_parts,
                   &$left_tile[$k / $depth][($left_group + $i + $lane / 8 % 2) * 64 +
                                            ($lane / 16 * 8 + $lane % 8) * 4]);
#pragma unroll
    for (int $j = 0; $j < $columns; $j += 2) {
      $multiply($sums[$i / 2][$j / 2], $left_parts, $right_parts[$j / 2]);
    }
  }
})";

inline constexpr std::string_view next_order_text = R"(
if ($is_end_of_order) {
#pragma unroll
  for (int $i = 0; $i < $rows / 2; ++$i) {
#pragma unroll
    for (int $j = 0; $j < $columns / 2; ++$j) {
      $next_order($sums[$i][$j], $left_over[$i][$j]);
    }
  }
})";

inline constexpr std::string_view result_text = R"(
#pragma unroll
for (int $i = 0; $i < $rows; $i += 2) {
#pragma unroll
  for (int $j = 0; $j < $columns; $j += 2) {
    float $tile[4];
    $to_floats($tile, $sums[$i / 2][$j / 2], $left_over[$i / 2][$j / 2]);
#pragma unroll
    for (int $fragment = 0; $fragment < 4; ++$fragment) {
      $sum[$i + $fragment / 2][$j + $fragment % 2] =
          $tile[$fragment] * $left_units[$left_across + $left_place + ($i + $fragment / 2) * 8] *
          $right_units[$right_across + $right_place - $lane / 4 + $lane % 4 * 2 + $j * 4 +
                       $fragment % 2];
    }
  }
})";

// A thread slices what becomes one row of 16 bytes of each slice.
inline constexpr std::string_view stores_text = R"(unsigned $packed[4][3];
#pragma unroll
    for (int $i = 0; $i < 4; ++$i) {
      const float $scaled[4] = {$values[$i * 4], $values[$i * 4 + 1], $values[$i * 4 + 2],
                                $values[$i * 4 + 3]};
      $slice($packed[$i], $scaled);
    }
#pragma unroll
    for (int $part = 0; $part < $slices; ++$part) {
      *reinterpret_cast<uint4 *>(
          &$words[(($part * $k_end + $k) / $depth * ($rows / 8) + $row / 8) * 64 +
                  ($k / $chunk % 2 * 8 + $row % 8) * 4]) =
          make_uint4($packed[0][$part], $packed[1][$part], $packed[2][$part], $packed[3][$part]);
    })";

} // namespace evo::slice_texts
