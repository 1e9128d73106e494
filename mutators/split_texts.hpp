// The CUDA that split_operands prints: the passes that split a matrix before the launch, the only
// kernels whose bodies a rewrite brings along, and what takes the place of copies and splits in the
// kernel itself. Each $name is filled in (filled_in.hpp).
#pragma once

#include <string_view>

namespace evo::split_texts {

inline constexpr std::string_view round_up_text = R"(
__host__ __device__ constexpr int $round_up(int $size, int $multiple) {
  return ($size + $multiple - 1) / $multiple * $multiple;
}
)";

// A tile's words, four at once, as they lie in the matrix.
inline constexpr std::string_view loop_text =
    R"(for (int $word = threadIdx.x * 4; $word < $tile_words; $word += $threads * 4) {
  $copy_word
})";
// The same where there are several tiles: by way of registers it must be unrolled.
inline constexpr std::string_view unrolled_text = R"(#pragma unroll
for (int $copy = 0; $copy < $copies; ++$copy) {
  const int $word = (threadIdx.x + $copy * $threads) * 4;
  $copy_word
})";
inline constexpr std::string_view word_text =
    R"(const int $panel = $word / ($tile_across * $panel_words);
const int $offset = $word % ($tile_across * $panel_words);
)";
inline constexpr std::string_view to_text = "&$tile[$panel][$offset]";
inline constexpr std::string_view from_text =
    "&$matrix[(($first_panel + $panel) * $rounded + $block_across) * $row_words + $offset]";
inline constexpr std::string_view copies_text = R"(
constexpr int $copies = $tile_words / ($threads * 4);
static_assert($tile_words % ($threads * 4) == 0);
)";

inline constexpr std::string_view left_text = R"(for (int $part = 0; $part < $parts; ++$part) {
  $load_matrices($registers,
                 &$tile[$k / $depth][(($group + $accumulator + $lane / 8 % 2) * $parts + $part) * 64 +
                                     ($lane / 16 * 8 + $lane % 8) * 4]);
})";

inline constexpr std::string_view right_text = R"(for (int $part = 0; $part < $parts; ++$part) {
  $load_matrices($registers,
                 &$tile[$k / $depth][(($group + $accumulator / 2) * $parts + $part) * 64 +
                                     $lane % 16 * 4]);
})";

inline constexpr std::string_view right_pairs_text =
    R"(for (int $pair = 0; $pair < $accumulators / 2 * $parts; $pair += 2) {
  static_assert($accumulators / 2 * $parts % 2 == 0);
  unsigned $fragments[4];
  $load_matrices($fragments, &$tile[$k / $depth][($group * $parts + $pair) * 64 + $lane * 4]);
#pragma unroll
  for (int $fragment = 0; $fragment < 4; ++$fragment) {
    const int $accumulator = ($pair + $fragment / 2) / $parts * 2;
    const int $part = ($pair + $fragment / 2) % $parts;
    const int $slot = $fragment % 2;
    $registers[$slot] = $fragments[$fragment];
  }
})";

inline constexpr std::string_view stores_text = R"(#pragma unroll
    for (int $part = 0; $part < $parts; ++$part) {
      unsigned $packed[4];
#pragma unroll
      for (int $i = 0; $i < 4; ++$i) {
        $pack
      }
      *reinterpret_cast<uint4 *>(
          &$words[(($k / $depth * ($rows / 8) + $row / 8) * $parts + $part) * 64 +
                  ($k / $chunk % 2 * 8 + $row % 8) * 4]) =
          make_uint4($packed[0], $packed[1], $packed[2], $packed[3]);
    })";

// A thread splits what becomes one row of 16 bytes, of each part. Neighbouring threads read
// neighbours in memory.
inline constexpr std::string_view split_text = R"(
// Splits a matrix into parts, which $kernel loads by ldmatrix: in panels of $depth along k, eight
// rows together, of each part the two halves of a panel behind each other.
__global__ void $split(const float *$matrix, unsigned *$words, $parameters) {
  $coordinates
  const int $rows = $round_up($across, $tile_across);
  if ($row < $rows && $k < $round_up($limit, $tile_k)) {
    float $values[$chunk];
#pragma unroll
    for (int $i = 0; $i < $chunk; ++$i) {
      $values[$i] = $row < $across && $k + $i < $limit ? $element : 0.0f;
    }
$stores
  }
}
)";

inline constexpr std::string_view pack_pair =
    R"($packed[$i] = $round($values[$i * 2], $values[$i * 2 + 1]);
$values[$i * 2] -= $take_low($packed[$i]);
$values[$i * 2 + 1] -= $take_high($packed[$i]);)";
inline constexpr std::string_view pack_one = R"($packed[$i] = $round($values[$i]);
$values[$i] -= $take_low($packed[$i]);)";

// A warp has eight rows and four chunks of them, so that it writes whole pieces of 128 bytes too.
inline constexpr std::string_view along_rows =
    R"(const int $row = blockIdx.y * 64 + threadIdx.x / 4;
const int $k = (blockIdx.x * 4 + threadIdx.x % 4) * $chunk;)";
inline constexpr std::string_view grid_along_rows =
    "dim3(($round_up($limit, $tile_k) + $chunk * 4 - 1) / ($chunk * 4), "
    "($round_up($across, $tile_across) + 63) / 64)";
inline constexpr std::string_view along_columns =
    R"(const int $row = blockIdx.x * 256 + threadIdx.x;
const int $k = blockIdx.y * $chunk;)";
inline constexpr std::string_view grid_along_columns =
    "dim3(($round_up($across, $tile_across) + 255) / 256, $round_up($limit, $tile_k) / $chunk)";

} // namespace evo::split_texts
