// The CUDA of a pass that scales a matrix before it splits it (scaled_words.hpp), a kernel that a
// rewrite brings along, and of what takes results back. Each $name is filled in (filled_in.hpp).
#pragma once

#include <string_view>

namespace evo::scale_texts {

// The threads of a block go twice through a few rows: to find their magnitudes, then to split them.
inline constexpr std::string_view pass_text = R"(
// Splits a matrix for $kernel, each row scaled by a power of two that its magnitude asks for. What
// takes the row back is left in $units.
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
  const float $scale = $scale_of($largest);
  if ($first == 0 && $row < $rows) {
    $units[$row] = $unit($scale);
  }
  for (int $k = $first * $chunk; $k < $k_end && $row < $rows; $k += 32 * $chunk) {
    float $values[$chunk];
#pragma unroll
    for (int $i = 0; $i < $chunk; ++$i) {
      $values[$i] = $row < $across && $k + $i < $limit ? $element : 0.0f;
    }
#pragma unroll
    for (int $i = 0; $i < $chunk; ++$i) {
      $values[$i] *= $scale;
    }
    $stores
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

inline constexpr std::string_view result_text = R"(
#pragma unroll
for (int $i = 0; $i < $rows; ++$i) {
#pragma unroll
  for (int $j = 0; $j < $columns; ++$j) {
    $sum[$i][$j] = $sum[$i][$j] * $left_units[$left_across + $left_place + $i * 8] *
                   $right_units[$right_across + $right_place - $lane / 4 + $lane % 4 * 2 +
                                $j / 2 * 8 + $j % 2];
  }
})";

} // namespace evo::scale_texts
