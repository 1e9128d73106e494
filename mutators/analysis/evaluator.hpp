// Evaluates a kernel file's integer arithmetic: expressions, and whole blocks of threads with every
// access they make to an array. Rewrites use it to recognise and to prove, under the constants as
// they are or as they might become, without compiling anything.
//
// Floats are opaque: they flow, but nothing may depend on one. Whatever cannot be followed (an
// integer loaded from memory that decides an address, assembly that is no instruction of
// ptx_instruction.hpp, a lambda, ...) ends the evaluation with a Failure that says why and where;
// there is never a guess.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mutators/analysis/lanes.hpp"
#include "mutators/kernel.hpp"

namespace clang {
class Expr;
class FunctionDecl;
class ValueDecl;
class VarDecl;
} // namespace clang

namespace evo {

/// A dim3.
struct Extent3 {
  int x = 1;
  int y = 1;
  int z = 1;

  std::int64_t count() const { return std::int64_t{x} * y * z; }
  bool operator==(const Extent3&) const = default;
};

/// Values that replace what the file says: hypothetical ones of its constants, and those of
/// parameters and local variables that an expression mentions.
using Assignment = std::map<const clang::VarDecl*, std::int64_t>;

/// Why an evaluation ended early. Unknown: this evaluator cannot follow the program. Fault: the
/// program is wrong under these values (an index out of its array, a failing static_assert, a
/// barrier that some threads miss, a division by zero).
struct Failure {
  enum class Kind { Unknown, Fault };
  Kind kind = Kind::Unknown;
  std::string reason; // "line:column: ..."
};

/// An array that a run touched. A struct in shared memory is seen by its members: `tiles.w`.
struct Array {
  enum class Space { Global, Shared, Local };
  Space space = Space::Local;
  std::string name;                       // for messages
  const clang::ValueDecl* decl = nullptr; // the parameter, variable or innermost field
  int buffer = -1;                        // for Global: Buffer::id of what it points to
  int element_bytes = 1;
  std::int64_t elements = -1; // -1: not declared (what a pointer points to)
};

/// What the active threads do together when they execute `site` once.
struct Access {
  int array = 0; // index into Evaluator::arrays()
  bool write = false;
  const clang::Expr* site = nullptr;
  int width = 1; // consecutive elements per thread: 4 for a float4
  /// A write by an asynchronous copy that begins; another one follows when the copy has arrived.
  bool in_flight = false;
  const Ints* elements =
      nullptr;                  // per lane, the first element's flat index; valid in the call only
  const Mask* active = nullptr; // likewise
};

/// Receives what a run does, in program order: all lanes do one access before any does the next,
/// which between two barriers is one legal order among many. It may throw a Failure, which run()
/// then returns.
class AccessObserver {
public:
  virtual ~AccessObserver() = default;
  virtual void access(const Access& access) = 0;
  /// A __syncthreads() of all threads.
  virtual void barrier() {}

  /// Accesses between begin and end depend on nothing but what `segment` identifies. When the
  /// same segment is about to run again, repeat() may return true to stand for all of it.
  virtual void begin_segment(int /*segment*/) {}
  virtual void end_segment(int /*segment*/) {}
  virtual bool repeat(int /*segment*/) { return false; }
};

/// Where a pointer argument points: byte `offset` of a buffer. Arguments with one id alias.
struct Buffer {
  int id = 0;
  std::int64_t offset = 0;

  bool operator==(const Buffer&) const = default;
};

/// An argument of a kernel: a float or anything else opaque, an integer, or a pointer.
using Argument = std::variant<std::monostate, std::int64_t, Buffer>;

/// One block of a launch.
struct Block {
  const clang::FunctionDecl* kernel = nullptr;
  Extent3 grid;
  Extent3 block;
  Extent3 index; // blockIdx; the default is no block: set it
  std::vector<Argument> arguments;
  std::int64_t dynamic_shared_bytes = 0;
  std::vector<int> threads = {}; // linear thread numbers to run; empty: all of them
};

class Interpreter;

/// Evaluations under one assignment. Results of earlier runs are reused, so keep one evaluator for
/// all blocks of a kernel. The kernel must outlive it.
class Evaluator {
public:
  /// `step_limit` bounds the AST nodes that one call visits; beyond it: Unknown.
  explicit Evaluator(const Kernel& kernel, Assignment values = {},
                     std::int64_t step_limit = 5'000'000);
  ~Evaluator();

  /// An integer expression anywhere in the file. Constants, parameters and variables have the
  /// assigned values; a local variable that is const and not assigned is evaluated from its
  /// initialiser.
  std::variant<std::int64_t, Failure> value(const clang::Expr& expression);

  /// The same for every thread of a block (lane = linear thread number), where the expression may
  /// mention threadIdx, blockIdx, blockDim and gridDim.
  std::variant<Ints, Failure> value(const clang::Expr& expression, const Block& block);

  /// Bytes of a variable or field of any complete type.
  std::variant<std::int64_t, Failure> size_of(const clang::ValueDecl& declaration);

  /// Runs the threads of one block to their end. nullopt: done.
  std::optional<Failure> run(const Block& block, AccessObserver& observer);

  /// The arrays seen so far, over all runs; indices stay valid.
  const std::vector<Array>& arrays() const;

private:
  std::unique_ptr<Interpreter> interpreter_;
};

} // namespace evo
