// What the lanes of a warp do together by inline PTX, as all lanes run together: ldmatrix reads
// rows that other lanes name, mma.sync multiplies what lies in the registers of 32 lanes.
#include <algorithm>
#include <array>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

#include "mutators/analysis/interpreter.hpp"
#include "mutators/ptx_instruction.hpp"
#include "mutators/target.hpp"

namespace evo {
namespace {

constexpr std::size_t matrix_rows = 8;
constexpr std::int64_t row_bytes = 16;

/// The numbers in one lane's register, by part, or in a row or column of a matrix, along k.
struct Numbers {
  std::array<std::uint64_t, 32> values{};
  bool defined = true;
};

/// Spreads the registers of a warp over rows or columns: those of four lanes over one, `count`
/// numbers each, from number `at` on. More or fewer numbers in a register are none.
void put(Numbers* lines, std::size_t at, const Packed& from, std::size_t count, std::size_t first) {
  for (std::size_t part = 0; part < from.parts.size(); ++part) {
    const Ring& number = from.parts[part];
    const auto values = number.value.values();
    const std::size_t stride = number.value.uniform() ? 0 : 1;
    for (std::size_t lane = 0; lane < warp_size; ++lane) {
      Numbers& line = lines[lane / 4];
      line.defined = line.defined && number.is_defined_in(first + lane) == (part < count);
      if (part < count) {
        line.values[at + lane % 4 * count + part] =
            static_cast<std::uint64_t>(values[stride * (first + lane)]);
      }
    }
  }
  for (std::size_t line = 0; from.parts.size() < count && line < matrix_rows; ++line) {
    lines[line].defined = false;
  }
}

std::uint64_t product(const Numbers& a, const Numbers& b, std::size_t length) {
  std::uint64_t sum = 0;
  for (std::size_t k = 0; k < length; ++k) {
    sum += a.values[k] * b.values[k];
  }
  return sum;
}

/// A x B + sum in one warp. `registers` are the 4 of A, then the 2 of B.
void multiply(const std::vector<const Packed*>& registers, std::size_t elements, std::size_t first,
              std::array<std::vector<std::int64_t>, 4>& sums, std::array<Mask, 4>& undefined) {
  std::array<Numbers, 2 * matrix_rows> a;
  std::array<Numbers, matrix_rows> b;
  for (std::size_t i = 0; i < 4; ++i) {
    put(&a[i % 2 * matrix_rows], i / 2 * 4 * elements, *registers[i], elements, first);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    put(b.data(), i * 4 * elements, *registers[4 + i], elements, first);
  }
  for (std::size_t lane = 0; lane < warp_size; ++lane) {
    for (std::size_t i = 0; i < 4; ++i) {
      const Numbers& row = a[lane / 4 + i / 2 * matrix_rows];
      const Numbers& column = b[lane % 4 * 2 + i % 2];
      std::int64_t& sum = sums[i][first + lane];
      sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                      product(row, column, 8 * elements));
      if (!row.defined || !column.defined) {
        undefined[i].set(first + lane, true);
      }
    }
  }
}

/// The number that a value is, a float or alone in a register; nullptr for any other value.
const Ring* single(const Value& value) {
  const auto* packed = std::get_if<Packed>(&value);
  return packed != nullptr && packed->parts.size() == 1 ? &packed->parts.front()
                                                        : std::get_if<Ring>(&value);
}

} // namespace

/// Whether what stands there is taken for a register, as far as floats are followed: 32 bits that
/// are no float.
bool Interpreter::is_register(const Place& place, clang::QualType type) const {
  return type->isIntegerType() && place.layout->bytes == register_bytes &&
         arrays_[place.array].element_bytes == register_bytes;
}

/// A register in memory; one that no thread put numbers into is not known.
Value Interpreter::load_register(const Place& from) {
  Packed result{memory_->load_register(from.array, arrays_[from.array],
                                       divided(from.offset, register_bytes), mask_)};
  const bool known = std::ranges::any_of(result.parts, [&](const Ring& part) {
    return !part.undefined || part.undefined->count() < mask_.count();
  });
  return known || arrays_[from.array].space == Array::Space::Local
             ? Value(std::move(result))
             : Value(Unknown{"an integer read from memory decides here"});
}

void Interpreter::store_register(const Place& to, const Packed& value) {
  memory_->store_register(to.array, arrays_[to.array], divided(to.offset, register_bytes),
                          value.parts, mask_);
}

void Interpreter::assembly(const clang::GCCAsmStmt& statement) {
  const auto [known, added] = instructions_.try_emplace(&statement, nullptr);
  const PtxInstruction* instruction = known->second =
      added ? ptx_instruction(statement) : known->second;
  if (instruction == nullptr) {
    unknown(statement, "inline assembly is not followed");
  }
  std::vector<Value> results;
  switch (instruction->kind) {
  case PtxInstruction::Kind::LoadMatrices:
    results = loaded_matrices(statement, *instruction);
    break;
  case PtxInstruction::Kind::MultiplyMatrices:
    results = multiplied_matrices(statement, *instruction);
    break;
  case PtxInstruction::Kind::Pack:
    results = packed(statement);
    break;
  case PtxInstruction::Kind::Unpack:
    results = unpacked(statement, static_cast<std::size_t>(instruction->element));
    break;
  case PtxInstruction::Kind::Slice:
    results = sliced(statement);
    break;
  case PtxInstruction::Kind::Scale:
    results = {memory_ == nullptr ? Value(Opaque{}) : Value(Ring{Ints(1), nullptr})};
    break;
  case PtxInstruction::Kind::NextOrder:
    results = in_next_order(statement);
    break;
  case PtxInstruction::Kind::FromIntegers:
    results = from_integers(statement);
    break;
  }
  for (unsigned i = 0; i < statement.getNumOutputs(); ++i) {
    const clang::Expr& output = *statement.getOutputExpr(i);
    store(lvalue(output), results[i], output);
  }
}

/// Numbers side by side in a register. The first operand is the highest.
std::vector<Value> Interpreter::packed(const clang::GCCAsmStmt& statement) {
  Packed result;
  for (unsigned i = statement.getNumInputs(); i > 0; --i) {
    const Value value = rvalue(*statement.getInputExpr(i - 1));
    const auto* number = std::get_if<Ring>(&value);
    if (number == nullptr) {
      return {Unknown{"a float as bits decides here"}};
    }
    result.parts.push_back(*number);
  }
  return {result};
}

/// As no rounding counts, the highest digits are all of a number.
std::vector<Value> Interpreter::sliced(const clang::GCCAsmStmt& statement) {
  Packed highest;
  Packed lower;
  for (unsigned i = 0; i < statement.getNumInputs(); ++i) {
    const Value value = rvalue(*statement.getInputExpr(i));
    const auto* number = std::get_if<Ring>(&value);
    if (number == nullptr) {
      return std::vector<Value>(statement.getNumOutputs(),
                                Unknown{"a float as digits decides here"});
    }
    highest.parts.push_back(*number);
    lower.parts.emplace_back();
  }
  std::vector<Value> results(statement.getNumOutputs(), lower);
  results.front() = highest;
  return results;
}

/// Sums of digits that are all of their numbers count the same in every order.
std::vector<Value> Interpreter::in_next_order(const clang::GCCAsmStmt& statement) {
  std::vector<Value> results;
  for (unsigned i = 0; i + 1 < statement.getNumOutputs(); ++i) {
    const clang::Expr& sum = *statement.getOutputExpr(i);
    results.push_back(load(lvalue(sum), sum));
  }
  results.emplace_back(Packed{{Ring{}}});
  return results;
}

std::vector<Value> Interpreter::from_integers(const clang::GCCAsmStmt& statement) {
  std::vector<Value> results;
  for (unsigned i = 0; i < statement.getNumOutputs(); ++i) {
    const Value value = rvalue(*statement.getInputExpr(i));
    const Ring* sum = single(value);
    results.push_back(sum != nullptr       ? Value(*sum)
                      : memory_ == nullptr ? Value(Opaque{})
                                           : Value(Unknown{"a sum of digits decides here"}));
  }
  return results;
}

std::vector<Value> Interpreter::unpacked(const clang::GCCAsmStmt& statement, std::size_t element) {
  const Value value = rvalue(*statement.getInputExpr(0));
  const auto* from = std::get_if<Packed>(&value);
  if (from == nullptr || from->parts.size() <= element) {
    return {memory_ == nullptr ? Value(Opaque{}) : Value(Unknown{"a float as bits decides here"})};
  }
  return {from->parts[element]};
}

/// The first lanes of the warps that are here, each as a whole.
std::vector<std::size_t> Interpreter::converged_warps(const clang::Stmt& where) const {
  if (!threads_.empty()) {
    unknown(where, "some threads of a block work as a warp");
  }
  std::vector<std::size_t> result;
  for (std::size_t first = 0; first < lanes_; first += warp_size) {
    std::size_t here = 0;
    for (std::size_t lane = first; lane < std::min(first + warp_size, lanes_); ++lane) {
      here += mask_[lane] ? 1 : 0;
    }
    if (here == warp_size) {
      result.push_back(first);
    } else if (here != 0) {
      fault(where, "an instruction that not all lanes of a warp reach");
    }
  }
  return result;
}

/// What the caller of a leaf helper passes for the row, or the operand itself.
const clang::Expr& Interpreter::row_site(const clang::Expr& address) const {
  const clang::CallExpr* call = frames_.back().call;
  for (unsigned i = 0; call != nullptr && i < call->getNumArgs(); ++i) {
    if (call->getArg(i)->getType()->isPointerType()) {
      return *call->getArg(i)->IgnoreParenImpCasts();
    }
  }
  return address;
}

std::vector<Value> Interpreter::loaded_matrices(const clang::GCCAsmStmt& statement,
                                                const PtxInstruction& instruction) {
  const auto matrices = static_cast<std::size_t>(instruction.matrices);
  const std::vector<std::size_t> warps = converged_warps(statement);
  const clang::Expr& address = *statement.getInputExpr(0);
  Place row = place(rvalue(address), address);
  row.layout = std::make_shared<Layout>(
      Layout{.bytes = row_bytes, .align = row_bytes, .element = {}, .fields = {}});
  const Array array = arrays_[row.array];
  if (array.space != Array::Space::Shared) {
    fault(statement, "ldmatrix reads " + array.name + ", which is not in shared memory");
  }
  const Mask active = mask_;
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    mask_.set(lane, active[lane] && lane % warp_size < matrices * matrix_rows);
  }
  touch(row, false, row_site(address));
  mask_ = active;
  if (memory_ == nullptr || (instruction.transposed && array.element_bytes != 2) ||
      array.element_bytes > register_bytes) {
    return std::vector<Value>(matrices, Unknown{"a register of a matrix decides here"});
  }
  const std::int64_t parts = register_bytes / array.element_bytes;
  std::vector<Value> results;
  for (std::size_t matrix = 0; matrix < matrices; ++matrix) {
    Packed result;
    for (std::int64_t part = 0; part < parts; ++part) {
      std::vector<std::int64_t> elements(lanes_);
      for (const std::size_t first : warps) {
        for (std::size_t lane = 0; lane < warp_size; ++lane) {
          const auto along = static_cast<std::int64_t>(lane / 4);
          const std::int64_t across = static_cast<std::int64_t>(lane % 4) * parts + part;
          const auto from = static_cast<std::size_t>(instruction.transposed ? across : along);
          elements[first + lane] =
              row.offset[first + matrix * matrix_rows + from] / array.element_bytes +
              (instruction.transposed ? along : across);
        }
      }
      const Ints at(std::move(elements));
      if (parts == 1) {
        result.parts = memory_->load_register(row.array, array, at, mask_);
      } else {
        result.parts.push_back(memory_->load(row.array, array, at, mask_));
      }
    }
    results.emplace_back(std::move(result));
  }
  return results;
}

std::vector<Value> Interpreter::multiplied_matrices(const clang::GCCAsmStmt& statement,
                                                    const PtxInstruction& instruction) {
  const std::vector<std::size_t> warps = converged_warps(statement);
  const Unknown lost{"a product of matrices that is not followed decides here"};
  std::array<std::vector<std::int64_t>, 4> sums;
  std::array<Mask, 4> undefined{Mask(lanes_, false), Mask(lanes_, false), Mask(lanes_, false),
                                Mask(lanes_, false)};
  bool followed = memory_ != nullptr;
  for (unsigned i = 0; i < sums.size(); ++i) {
    const clang::Expr& output = *statement.getOutputExpr(i);
    const Value before = load(lvalue(output), output);
    const Ring* sum = single(before);
    followed = followed && sum != nullptr;
    if (followed) {
      sums[i] = spread(sum->value, lanes_);
      undefined[i] = sum->undefined ? *sum->undefined : Mask(lanes_, false);
    }
  }
  std::vector<Value> inputs;
  std::vector<const Packed*> registers;
  for (unsigned i = 0; i < statement.getNumInputs(); ++i) {
    inputs.push_back(rvalue(*statement.getInputExpr(i)));
  }
  for (const Value& input : inputs) {
    registers.push_back(std::get_if<Packed>(&input));
    followed = followed && registers.back() != nullptr;
  }
  if (!followed) {
    const bool floats = statement.getOutputExpr(0)->getType()->isFloatingType();
    return std::vector<Value>(sums.size(),
                              floats && memory_ == nullptr ? Value(Opaque{}) : Value(lost));
  }
  for (const std::size_t first : warps) {
    multiply(registers, static_cast<std::size_t>(instruction.elements), first, sums, undefined);
  }
  std::vector<Value> results;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    Ring sum{Ints(std::move(sums[i])), nullptr};
    if (undefined[i].any()) {
      sum.undefined = std::make_shared<const Mask>(std::move(undefined[i]));
    }
    if (statement.getOutputExpr(static_cast<unsigned>(i))->getType()->isFloatingType()) {
      results.emplace_back(std::move(sum));
    } else {
      results.emplace_back(Packed{{std::move(sum)}});
    }
  }
  return results;
}

} // namespace evo
