// The PTX instructions that evo knows: those that its leaf helpers wrap.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace clang {
class FunctionDecl;
class GCCAsmStmt;
} // namespace clang

namespace evo {

struct PtxInstruction {
  enum class Kind {
    LoadMatrices,     // ldmatrix: operands are the registers, then the row's address
    MultiplyMatrices, // mma.sync: 4 sums, 4 registers of A, 2 of B
    Pack,             // floats of the lane's own into a register, rounded
    Unpack,           // one of these as a float
    Slice,            // floats into registers of their digits, the highest ones first
    Scale,            // a factor that a later one takes back
    NextOrder,        // 4 sums of digits, and what their division by the base leaves over
    FromIntegers,     // 4 sums of digits, and what was left over, as floats
  };
  std::string_view name; // of its leaf helper, and what the CPU runs
  Kind kind = Kind::Pack;
  std::string_view text;        // without white space
  std::string_view constraints; // "=r=r,r": of the outputs, then of the inputs
  int matrices = 0;             // that ldmatrix loads
  bool transposed = false;
  int elements = 0; // of A or B in a register of mma.sync
  int element = 0;  // that is unpacked, from the low bits up
};

/// In the order in which a file declares their helpers.
std::span<const PtxInstruction> ptx_instructions();

/// The instruction that an asm statement consists of, with operands of the right kinds in order;
/// nullptr for any other assembly.
const PtxInstruction* ptx_instruction(const clang::GCCAsmStmt& statement);

/// The statement if assembly is in a function's own body; nullptr if there is none.
const clang::GCCAsmStmt* assembly_in(const clang::FunctionDecl& function);

} // namespace evo
