// What mma.sync computes: D = A B + D on the registers of a warp.
//
// The layouts are the PTX ISA's: of each of the 16 rows of A and the 8 columns of B, a register
// holds 4 bytes along k.
//
// Products are exact. How the hardware adds them is not documented; measurements have been
// published: M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor
// cores", PeerJ Computer Science 7:e330 (2021), and F. A. Khattak, M. Mikaitis, "Accurate models of
// NVIDIA tensor cores", arXiv:2512.07004 (2025). Modelled here: the products of a stretch of k
// (16 bytes of it on sm_80 to sm_89, 32 on sm_90) and the sum so far are aligned to the largest
// exponent among them, which is taken of a product before it is normalised; what lies more than 24
// (on sm_90: 25) bits behind that exponent is cut off; their sum is exact, and cut off to float32.
// Not modelled: NaN payloads, the sign of a zero, and whether subnormal tf32 operands count.
#pragma once

#include "fitness/cpu/abi.hpp"
#include "fitness/cpu/block.hpp"
#include "fitness/cpu/executor.hpp"

namespace evo::cpu {

/// Of one lane; 4 of `sum`, 4 of `a`, 2 of `b`.
struct MatrixRegisters {
  unsigned* sum = nullptr;
  const unsigned* a = nullptr;
  const unsigned* b = nullptr;
};

struct Multiplication {
  evo_gpu::MatrixType type = evo_gpu::MatrixType::Fp16;
  Accumulation accumulation = Accumulation::Rounded;
  MatrixRegisters registers;
};

/// A WarpOperation: each lane brings its Multiplication, and all agree on its type.
void multiply(const Lanes& lanes);

} // namespace evo::cpu
