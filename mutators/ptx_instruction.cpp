#include "mutators/ptx_instruction.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

namespace evo {
namespace {

using Kind = PtxInstruction::Kind;

constexpr PtxInstruction load(std::string_view name, std::string_view text,
                              std::string_view constraints, int matrices, bool transposed) {
  return {name, Kind::LoadMatrices, text, constraints, matrices, transposed};
}

constexpr PtxInstruction unpack(std::string_view name, std::string_view text, int element) {
  return {name, Kind::Unpack, text, "=f,r", 0, false, 0, element};
}

constexpr std::array<PtxInstruction, 24> instructions{{
    load("ldmatrix_x1", "ldmatrix.sync.aligned.m8n8.x1.shared.b16{%0},[%1];", "=r,r", 1, false),
    load("ldmatrix_x1_trans", "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16{%0},[%1];", "=r,r", 1,
         true),
    load("ldmatrix_x2", "ldmatrix.sync.aligned.m8n8.x2.shared.b16{%0,%1},[%2];", "=r=r,r", 2,
         false),
    load("ldmatrix_x2_trans", "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16{%0,%1},[%2];",
         "=r=r,r", 2, true),
    load("ldmatrix_x4", "ldmatrix.sync.aligned.m8n8.x4.shared.b16{%0,%1,%2,%3},[%4];", "=r=r=r=r,r",
         4, false),
    load("ldmatrix_x4_trans", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16{%0,%1,%2,%3},[%4];",
         "=r=r=r=r,r", 4, true),
    {"mma_fp16", Kind::MultiplyMatrices,
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
     "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};",
     "+f+f+f+f,rrrrrr", 0, false, 2},
    {"mma_bf16", Kind::MultiplyMatrices,
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
     "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};",
     "+f+f+f+f,rrrrrr", 0, false, 2},
    {"mma_tf32", Kind::MultiplyMatrices,
     "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
     "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};",
     "+f+f+f+f,rrrrrr", 0, false, 1},
    {"mma_int8", Kind::MultiplyMatrices,
     "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
     "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};",
     "+r+r+r+r,rrrrrr", 0, false, 4},
    {"pack_fp16", Kind::Pack, "cvt.rn.f16x2.f32%0,%1,%2;", "=r,ff"},
    {"pack_bf16", Kind::Pack, "cvt.rn.bf16x2.f32%0,%1,%2;", "=r,ff"},
    {"round_tf32", Kind::Pack, "cvt.rna.tf32.f32%0,%1;", "=r,f"},
    unpack("low_fp16", "{.reg.b16low,high;mov.b32{low,high},%1;cvt.f32.f16%0,low;}", 0),
    unpack("high_fp16", "{.reg.b16low,high;mov.b32{low,high},%1;cvt.f32.f16%0,high;}", 1),
    unpack("low_bf16", "shl.b32%0,%1,16;", 0),
    unpack("high_bf16", "and.b32%0,%1,0xffff0000;", 1),
    {"scale_fp16", Kind::Scale,
     "{.reg.f32magnitude,ratio;.reg.b32bits;max.f32magnitude,%1,0f0D800000;div.rn.f32ratio,0f468"
     "00000,magnitude;mov.b32bits,ratio;and.b32bits,bits,0xFF800000;mov.b32%0,bits;}",
     "=f,f"},
    {"unit_fp16", Kind::Scale, "div.rn.f32%0,0f3F800000,%1;", "=f,f"},
    {"slice_int8", Kind::Slice,
     "{.reg.b32a,b,c,d,ab,cd;cvt.rni.s32.f32a,%3;cvt.rni.s32.f32b,%4;cvt.rni.s32.f32c,%5;cvt.rni"
     ".s32.f32d,%6;add.s32a,a,0x808080;add.s32b,b,0x808080;add.s32c,c,0x808080;add.s32d,d,0x8080"
     "80;xor.b32a,a,0x808080;xor.b32b,b,0x808080;xor.b32c,c,0x808080;xor.b32d,d,0x808080;prmt.b3"
     "2ab,a,b,0x5140;prmt.b32cd,c,d,0x5140;prmt.b32%2,ab,cd,0x5410;prmt.b32%1,ab,cd,0x7632;prmt."
     "b32ab,a,b,0x0062;prmt.b32cd,c,d,0x0062;prmt.b32%0,ab,cd,0x5410;}",
     "=r=r=r,ffff", 0, false, 4},
    {"scale_int8", Kind::Scale,
     "{.reg.f32magnitude,ratio;.reg.b32bits;max.f32magnitude,%1,0f0D800000;div.rn.f32ratio,0f4AF"
     "E0000,magnitude;mov.b32bits,ratio;and.b32bits,bits,0xFF800000;mov.b32%0,bits;}",
     "=f,f"},
    {"unit_int8", Kind::Scale, "div.rn.f32%0,0f47800000,%1;", "=f,f"},
    {"next_order_int8", Kind::NextOrder,
     "{.reg.b32ab,cd;prmt.b32ab,%0,%1,0x0040;prmt.b32cd,%2,%3,0x0040;prmt.b32%4,ab,cd,0x5410;shr"
     ".s32%0,%0,8;shr.s32%1,%1,8;shr.s32%2,%2,8;shr.s32%3,%3,8;}",
     "+r+r+r+r=r,"},
    {"sum_int8", Kind::FromIntegers,
     "{.reg.b32byte;.reg.f32rest;cvt.rn.f32.s32%0,%4;cvt.rn.f32.s32%1,%5;cvt.rn.f32.s32%2,%6;cvt"
     ".rn.f32.s32%3,%7;bfe.u32byte,%8,0,8;cvt.rn.f32.u32rest,byte;fma.rn.f32%0,rest,0f3B800000,%"
     "0;bfe.u32byte,%8,8,8;cvt.rn.f32.u32rest,byte;fma.rn.f32%1,rest,0f3B800000,%1;bfe.u32byte,%"
     "8,16,8;cvt.rn.f32.u32rest,byte;fma.rn.f32%2,rest,0f3B800000,%2;bfe.u32byte,%8,24,8;cvt.rn."
     "f32.u32rest,byte;fma.rn.f32%3,rest,0f3B800000,%3;}",
     "=f=f=f=f,rrrrr"},
}};

std::string without_space(std::string_view text) {
  std::string result;
  std::ranges::copy_if(text, std::back_inserter(result),
                       [](char c) { return std::isspace(static_cast<unsigned char>(c)) == 0; });
  return result;
}

std::string constraints_of(const clang::GCCAsmStmt& statement) {
  std::string result;
  for (unsigned i = 0; i < statement.getNumOutputs(); ++i) {
    result += std::string_view(statement.getOutputConstraint(i));
  }
  result += ',';
  for (unsigned i = 0; i < statement.getNumInputs(); ++i) {
    result += std::string_view(statement.getInputConstraint(i));
  }
  return result;
}

const clang::GCCAsmStmt* find_assembly(const clang::Stmt* statement) {
  if (statement == nullptr || clang::isa<clang::GCCAsmStmt>(statement)) {
    return clang::dyn_cast_or_null<clang::GCCAsmStmt>(statement);
  }
  for (const clang::Stmt* child : statement->children()) {
    if (const auto* found = find_assembly(child)) {
      return found;
    }
  }
  return nullptr;
}

} // namespace

std::span<const PtxInstruction> ptx_instructions() {
  return instructions;
}

const PtxInstruction* ptx_instruction(const clang::GCCAsmStmt& statement) {
  if (statement.isAsmGoto()) {
    return nullptr;
  }
  const llvm::StringRef text = statement.getAsmString()->getString();
  const std::string condensed = without_space({text.data(), text.size()});
  const std::string constraints = constraints_of(statement);
  const auto found = std::ranges::find_if(instructions, [&](const PtxInstruction& known) {
    return known.text == condensed && known.constraints == constraints;
  });
  return found == instructions.end() ? nullptr : &*found;
}

const clang::GCCAsmStmt* assembly_in(const clang::FunctionDecl& function) {
  return find_assembly(function.getBody());
}

} // namespace evo
