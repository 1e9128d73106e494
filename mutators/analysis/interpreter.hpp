// The machine behind Evaluator and evaluate_launches(): executes functions of a kernel file, all
// lanes together under a mask. Internal to mutators/analysis.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "mutators/analysis/evaluator.hpp"
#include "mutators/analysis/lanes.hpp"
#include "mutators/analysis/layout.hpp"
#include "mutators/analysis/ring.hpp"

namespace clang {
class ArraySubscriptExpr;
class BinaryOperator;
class CUDAKernelCallExpr;
class CXXConstructExpr;
class CallExpr;
class CastExpr;
class DeclStmt;
class ForStmt;
class FunctionDecl;
class GCCAsmStmt;
class IfStmt;
class InitListExpr;
class MemberExpr;
class Stmt;
class UnaryExprOrTypeTraitExpr;
class UnaryOperator;
} // namespace clang

namespace evo {

struct PtxInstruction;

constexpr std::int64_t register_bytes = 4;

/// A float that is not followed, or bytes that are only moved about.
struct Opaque {
  bool operator==(const Opaque&) const = default;
};
/// A value that was not followed; using it to decide anything ends the evaluation.
struct Unknown {
  std::string reason;
  bool operator==(const Unknown&) const = default;
};
/// A place in an array: what a pointer holds, and what an lvalue in memory is.
struct Place {
  int array = 0;
  Ints offset;      // bytes
  LayoutPtr layout; // of what stands there
  bool operator==(const Place&) const = default;
};
/// A register of several numbers, from its low bits up: two fp16, four int8, one tf32.
struct Packed {
  std::vector<Ring> parts;
  bool operator==(const Packed&) const = default;
};
struct Value;
/// A struct of scalars held in a variable: dim3, float4.
struct Record {
  std::vector<Value> fields;
  bool operator==(const Record&) const;
};
struct Value
    : std::variant<Opaque, Unknown, Ints, Ring, Packed, Place, Record, const clang::FunctionDecl*> {
  using variant::variant;
};
inline bool Record::operator==(const Record& other) const {
  return fields == other.fields;
}

struct Variable;
/// A scalar or struct variable (or one field of it), or a place in memory.
struct Reference {
  Variable* variable = nullptr;
  int field = -1;
  Place place; // when there is no variable
};
struct Variable {
  Value value = Ints{};
  std::variant<std::monostate, Reference> refers; // of a reference
};

/// A copy from global to shared memory that has begun.
struct AsyncCopy {
  Place to;
  Place from;
  std::int64_t elements = 1;
  Mask mask;  // who copies
  Mask reads; // and not zeros
  const clang::Expr* site = nullptr;
};

/// One function that runs.
struct Frame {
  std::unordered_map<const clang::VarDecl*, Variable> variables;
  Mask returned;
  std::variant<std::monostate, Value, Reference> result;
  std::optional<Place> object;           // *this
  const clang::CallExpr* call = nullptr; // that runs it
};

class Interpreter {
public:
  Interpreter(const Kernel& kernel, Assignment values, std::int64_t step_limit);

  // All of these throw Failure.
  std::int64_t integer(const clang::Expr& expression);
  Ints integers(const clang::Expr& expression, const Block& block);
  std::int64_t size_of(const clang::ValueDecl& declaration);
  void run(const Block& block, AccessObserver& observer);
  void run(const Block& block);

  /// From now on floats are followed as ring elements, in arrays through `memory`, and a buffer
  /// ends where `bytes` says.
  void follow_floats(RingMemory& memory, std::map<int, std::int64_t> bytes);

  /// Runs a host function as one lane. Kernel launches and calls of functions without a body go
  /// to the hooks.
  using OnLaunch = std::function<void(const clang::CUDAKernelCallExpr&)>;
  using OnCall = std::function<void(const clang::FunctionDecl&, const std::vector<Value>&)>;
  Value run_host(const clang::FunctionDecl& function, const std::vector<Argument>& arguments,
                 OnLaunch on_launch, OnCall on_call);

  Value rvalue(const clang::Expr& expression);
  Value value_of(const clang::Expr& expression); // also of a place
  const std::vector<Array>& arrays() const { return arrays_; }

private:
  struct ArrayState {
    std::int64_t bytes = -1;
    bool split = false;    // seen by its members
    bool accessed = false; // seen as a whole
  };
  struct Segment {
    std::vector<std::pair<const clang::VarDecl*, Value>> inputs;
    Mask mask;
    int id = 0;
  };
  struct Purity { // what may be reused of a statement
    bool reusable = false;
    std::vector<const clang::VarDecl*> inputs;
  };

  // interpreter.cpp: set-up, memory, lanes
  void start(std::size_t lanes);
  void bind_block(const Block& block);
  void bind_arguments(Frame& frame, const clang::FunctionDecl& function,
                      const std::vector<Argument>& arguments);
  void step(const clang::Stmt& statement);
  [[noreturn]] void unknown(const clang::Stmt& where, const std::string& reason) const;
  [[noreturn]] void fault(const clang::Stmt& where, const std::string& reason) const;
  const Ints& ints(const Value& value, const clang::Stmt& where) const;
  const Place& place(const Value& value, const clang::Stmt& where) const;
  Mask truth(const Value& value, const clang::Stmt& where) const;
  Value merged(const Value& ours, const Value& others) const;
  Value merged_registers(const Value& ours, const Value& others) const;
  const Ring& ring(const Value& value, const clang::Stmt& where) const;
  /// What the elements of an array are: its scalars or structs; where floats are followed, the
  /// scalars of its vectors (float4).
  int unit_bytes(const Layout& layout) const;
  int array_of(Array array, std::int64_t bytes, int parent = -1);
  void resize(int array, std::int64_t bytes);
  Place member_array(const Place& object, const clang::FieldDecl& field, const clang::Stmt& where);
  bool has_own_array(const Place& object, const clang::FieldDecl& field) const;
  void touch(const Place& place, bool write, const clang::Expr& site, bool in_flight = false);
  Value load_followed(const Place& from, clang::QualType type, const clang::Expr& site);
  void store_followed(const Place& to, clang::QualType type, const Value& value,
                      const clang::Expr& site);
  void forget_memory(int array);
  Value load(const Reference& from, const clang::Expr& site);
  void store(const Reference& to, const Value& value, const clang::Expr& site);
  Ints normalised(const Ints& value, clang::QualType type, const clang::Stmt& where,
                  bool overflow_is_unknown) const;
  bool within_active(const Ints& values, std::int64_t low, std::int64_t high) const;
  bool multiples(const Ints& values, std::int64_t align) const;
  Variable* builtin(const clang::VarDecl& variable);

  // interpreter_expressions.cpp
  Value evaluate(const clang::Expr& expression);
  Reference lvalue(const clang::Expr& expression);
  Reference variable(const clang::VarDecl& declaration, const clang::Expr& site);
  Reference global(const clang::VarDecl& declaration, const clang::Expr& site);
  Reference shared(const clang::VarDecl& declaration);
  Reference member(const clang::MemberExpr& expression);
  Reference subscript(const clang::ArraySubscriptExpr& expression);
  Value cast(const clang::CastExpr& expression);
  Value unary(const clang::UnaryOperator& expression);
  Value binary(const clang::BinaryOperator& expression);
  Value misalignment(const clang::Expr& address, const clang::BinaryOperator& asked);
  Value arithmetic(int opcode, const Value& left, const Value& right, clang::QualType type,
                   const clang::Expr& site);
  Value logical(const clang::BinaryOperator& expression);
  Value assign(const clang::BinaryOperator& expression);
  Value conditional(const clang::Expr& condition, const clang::Expr& yes, const clang::Expr& no,
                    const clang::Expr& site);
  Value construct(const clang::CXXConstructExpr& expression);
  Value initialiser_list(const clang::InitListExpr& expression);
  Value zero(clang::QualType type);
  Value uninitialised(clang::QualType type);
  Value followed_arithmetic(int opcode, const Value& left, const Value& right) const;
  Value followed_call(const std::string& name, const std::vector<Value>& arguments) const;
  LayoutPtr layout_as_written(const clang::Expr& operand);
  Value size(const clang::UnaryExprOrTypeTraitExpr& expression);
  LayoutPtr pointee(const clang::CastExpr& expression);
  std::variant<std::monostate, Value, Reference> call(const clang::CallExpr& expression);
  std::variant<std::monostate, Value, Reference> call_body(const clang::FunctionDecl& function,
                                                           const clang::CallExpr& expression);
  Value call_bodiless(const clang::FunctionDecl& function, const clang::CallExpr& expression);

  // interpreter_copies.cpp
  bool copies(const std::string& name, const std::vector<Value>& arguments,
              const clang::CallExpr& expression);
  void begin_copy(const std::vector<Value>& arguments, const clang::CallExpr& expression);
  void arrive(const AsyncCopy& copy);

  // interpreter_warps.cpp
  bool is_register(const Place& place, clang::QualType type) const;
  Value load_register(const Place& from);
  void store_register(const Place& to, const Packed& value);
  void assembly(const clang::GCCAsmStmt& statement);
  std::vector<Value> packed(const clang::GCCAsmStmt& statement);
  std::vector<Value> unpacked(const clang::GCCAsmStmt& statement, std::size_t element);
  std::vector<Value> sliced(const clang::GCCAsmStmt& statement);
  std::vector<Value> in_next_order(const clang::GCCAsmStmt& statement);
  std::vector<Value> from_integers(const clang::GCCAsmStmt& statement);
  std::vector<Value> loaded_matrices(const clang::GCCAsmStmt& statement,
                                     const PtxInstruction& instruction);
  std::vector<Value> multiplied_matrices(const clang::GCCAsmStmt& statement,
                                         const PtxInstruction& instruction);
  std::vector<std::size_t> converged_warps(const clang::Stmt& where) const;
  const clang::Expr& row_site(const clang::Expr& address) const;

  // interpreter_statements.cpp
  void execute(const clang::Stmt& statement);
  void execute_plain(const clang::Stmt& statement);
  void discard(const clang::Expr& expression);
  void declare(const clang::DeclStmt& statement);
  void declare_variable(const clang::VarDecl& variable, const clang::Stmt& where);
  void declare_array(const clang::VarDecl& variable, const LayoutPtr& layout);
  void initialise(const Place& target, const clang::Expr& initialiser);
  void fill_with_zeros(const Place& target, const clang::Expr& initialiser);
  void branch(const clang::IfStmt& statement);
  void loop(const clang::Expr* condition, const clang::Stmt& body, const clang::Expr* increment,
            bool condition_first);
  void leave(const clang::Stmt& statement);
  const Purity& purity(const clang::Stmt& statement);
  bool reuse(const clang::Stmt& statement);

  const Kernel& kernel_;
  Assignment values_;
  std::int64_t step_limit_;
  std::int64_t steps_ = 0;
  LayoutBuilder layouts_;

  std::size_t lanes_ = 1;
  Mask mask_{1};
  std::deque<Frame> frames_;
  std::vector<Mask> continued_;              // one per loop that runs
  std::map<std::string, Variable> builtins_; // "threadIdx"; Unknown outside a block
  std::unordered_map<const clang::VarDecl*, Variable*> builtin_of_;
  std::map<const clang::VarDecl*, Variable> constants_;
  std::int64_t dynamic_shared_bytes_ = 0;
  std::vector<int> threads_; // linear numbers of the lanes; empty: all of the block, in order
  AccessObserver* observer_ = nullptr;
  RingMemory* memory_ = nullptr; // where floats are followed
  std::map<int, std::int64_t> buffer_bytes_;
  std::vector<AsyncCopy> open_group_;
  std::deque<std::vector<AsyncCopy>> groups_in_flight_;
  OnLaunch on_launch_;
  OnCall on_call_;

  std::vector<Array> arrays_;
  std::vector<ArrayState> array_states_;
  std::map<std::pair<const void*, int>, int> array_ids_; // by declaration or buffer, and parent
  std::unordered_map<const clang::Stmt*, const PtxInstruction*> instructions_;
  std::map<const clang::Stmt*, Purity> purities_;
  std::map<const clang::Stmt*, std::vector<Segment>> segments_;
  int next_segment_ = 0;
  bool recording_ = false; // inside a segment
};

} // namespace evo
