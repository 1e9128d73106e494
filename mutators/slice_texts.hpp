// The CUDA that slice_operands prints: the passes that cut a matrix into slices of int8 before the
// launch, the only kernels whose bodies it brings along, and what takes the place of the product in
// the kernel itself. Each $name is filled in (filled_in.hpp).
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

// The threads of a block go twice through a few rows: to find their magnitudes, then to slice. A
// thread slices what becomes one row of 16 bytes of each slice.
inline constexpr std::string_view pass_text = R"(
// Cuts a matrix into slices, which $kernel loads by ldmatrix: one behind the other, each in panels
// of $depth along k, eight rows together, the two halves of a panel behind each other.
__global__ void $split(const float *$matrix, unsigned *$words, float *$units, $parameters) {
  __shared__ float $magnitudes[32][$block_rows];
  $coordinates
  const int $rows = $round_up($across, $tile_across);
  const int $k_end = $round_up($limit, $tile_k);
  float $largest = 0.0f;
  for (int $k = $first * $chunk; $k < $k_end; $k += 32 * $chunk) {
    float $values[$chunk];
#pragma unroll
    for (int $i = 0; $i < $chunk; ++$i) {
      $values[$i] = $row < $across && $k + $i < $limit ? $element : 0.0f;
    }
#pragma unroll
    for (int $i = 0; $i < $chunk; ++$i) {
      $largest = fmaxf($largest, fabsf($values[$i]));
    }
  }
  $magnitudes[$first][$row % $block_rows] = $largest;
  __syncthreads();
  for (int $i = 0; $i < 32; ++$i) {
    $largest = fmaxf($largest, $magnitudes[$i][$row % $block_rows]);
  }
  if ($first == 0 && $row < $rows) {
    $units[$row] = $unit($largest);
  }
  const float $scale = $scale_of($largest);
  for (int $k = $first * $chunk; $k < $k_end && $row < $rows; $k += 32 * $chunk) {
    float $values[$chunk];
#pragma unroll
    for (int $i = 0; $i < $chunk; ++$i) {
      $values[$i] = $row < $across && $k + $i < $limit ? $element : 0.0f;
    }
    unsigned $packed[4][3];
#pragma unroll
    for (int $i = 0; $i < 4; ++$i) {
      const float $scaled[4] = {$values[$i * 4] * $scale, $values[$i * 4 + 1] * $scale,
                                $values[$i * 4 + 2] * $scale, $values[$i * 4 + 3] * $scale};
      $slice($packed[$i], $scaled);
    }
#pragma unroll
    for (int $part = 0; $part < $slices; ++$part) {
      *reinterpret_cast<uint4 *>(
          &$words[(($part * $k_end + $k) / $depth * ($rows / 8) + $row / 8) * 64 +
                  ($k / $chunk % 2 * 8 + $row % 8) * 4]) =
          make_uint4($packed[0][$part], $packed[1][$part], $packed[2][$part], $packed[3][$part]);
    }
  }
}
)";

// A warp has eight rows and four chunks of them, or sixteen neighbours in memory.
inline constexpr std::string_view along_rows =
    R"(const int $row = blockIdx.x * 8 + threadIdx.x / 4 % 8;
const int $first = threadIdx.x / 32 * 4 + threadIdx.x % 4;)";
inline constexpr std::string_view along_columns =
    R"(const int $row = blockIdx.x * 16 + threadIdx.x % 16;
const int $first = threadIdx.x / 16;)";

} // namespace evo::slice_texts
