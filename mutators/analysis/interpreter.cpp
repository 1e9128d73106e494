#include "mutators/analysis/interpreter.hpp"

#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/Basic/SourceManager.h>

namespace evo {
namespace {

std::string where_is(const Kernel& kernel, const clang::Stmt& statement) {
  const auto place = kernel.ast().getSourceManager().getPresumedLoc(statement.getBeginLoc());
  return place.isInvalid()
             ? std::string()
             : std::to_string(place.getLine()) + ":" + std::to_string(place.getColumn()) + ": ";
}

Value record_of(Ints x, Ints y, Ints z) {
  return Record{{Value(std::move(x)), Value(std::move(y)), Value(std::move(z))}};
}

Value record_of(const Extent3& extent) {
  return record_of(extent.x, extent.y, extent.z);
}

/// Whether a struct is nothing but scalars of one size, as float4 is.
bool is_vector(const Layout& layout) {
  return layout.kind == Layout::Kind::Record && !layout.fields.empty() &&
         std::ranges::all_of(layout.fields, [&](const auto& entry) {
           const auto& [offset, field] = entry.second;
           const auto count = static_cast<std::int64_t>(layout.fields.size());
           return field->kind == Layout::Kind::Scalar && field->bytes * count == layout.bytes;
         });
}

} // namespace

Interpreter::Interpreter(const Kernel& kernel, Assignment values, std::int64_t step_limit)
    : kernel_(kernel), values_(std::move(values)), step_limit_(step_limit),
      layouts_(kernel.ast(), !values_.empty(),
               [this](const clang::Expr& extent) { return ints(rvalue(extent), extent)[0]; }),
      builtins_{{"threadIdx", {}},
                {"blockIdx", {}},
                {"blockDim", {}},
                {"gridDim", {}},
                {"warpSize", {}}} {
  start(1);
}

void Interpreter::start(std::size_t lanes) {
  steps_ = 0;
  for (auto& [name, variable] : builtins_) {
    variable.value = Unknown{name + " is not known outside a block"};
  }
  lanes_ = lanes;
  mask_ = Mask(lanes);
  continued_.clear();
  frames_.clear();
  frames_.push_back(
      Frame{.variables = {}, .returned = Mask(lanes, false), .result = {}, .object = {}});
  open_group_.clear();
  groups_in_flight_.clear();
  recording_ = false;
}

std::int64_t Interpreter::integer(const clang::Expr& expression) {
  start(1);
  return ints(rvalue(expression), expression)[0];
}

Ints Interpreter::integers(const clang::Expr& expression, const Block& block) {
  bind_block(block);
  return ints(rvalue(expression), expression);
}

std::int64_t Interpreter::size_of(const clang::ValueDecl& declaration) {
  start(1);
  return layouts_.of(declaration)->bytes;
}

void Interpreter::run(const Block& block, AccessObserver& observer) {
  observer_ = &observer;
  run(block);
  observer_ = nullptr;
}

void Interpreter::run(const Block& block) {
  bind_block(block);
  execute(*block.kernel->getBody());
}

void Interpreter::follow_floats(RingMemory& memory, std::map<int, std::int64_t> bytes) {
  memory_ = &memory;
  buffer_bytes_ = std::move(bytes);
}

Value Interpreter::run_host(const clang::FunctionDecl& function,
                            const std::vector<Argument>& arguments, OnLaunch on_launch,
                            OnCall on_call) {
  start(1);
  on_launch_ = std::move(on_launch);
  on_call_ = std::move(on_call);
  bind_arguments(frames_.back(), function, arguments);
  execute(*function.getBody());
  const auto* result = std::get_if<Value>(&frames_.back().result);
  return result != nullptr ? *result : Value(Unknown{"the function returns nothing"});
}

void Interpreter::bind_block(const Block& block) {
  std::vector<std::int64_t> x, y, z;
  const auto add = [&](std::int64_t thread) {
    x.push_back(thread % block.block.x);
    y.push_back(thread / block.block.x % block.block.y);
    z.push_back(thread / block.block.x / block.block.y);
  };
  if (block.threads.empty()) {
    for (std::int64_t thread = 0; thread < block.block.count(); ++thread) {
      add(thread);
    }
  } else {
    std::ranges::for_each(block.threads, add);
  }
  start(x.size());
  builtins_["warpSize"].value = Ints(32);
  builtins_["threadIdx"].value = record_of(Ints(x), Ints(y), Ints(z));
  builtins_["blockIdx"].value = record_of(block.index);
  builtins_["blockDim"].value = record_of(block.block);
  builtins_["gridDim"].value = record_of(block.grid);
  dynamic_shared_bytes_ = block.dynamic_shared_bytes;
  threads_ = block.threads;
  for (std::size_t array = 0; memory_ != nullptr && array < arrays_.size(); ++array) {
    if (arrays_[array].space != Array::Space::Global) {
      memory_->forget(static_cast<int>(array));
    }
  }
  if (block.kernel != nullptr) {
    bind_arguments(frames_.back(), *block.kernel, block.arguments);
  }
}

void Interpreter::bind_arguments(Frame& frame, const clang::FunctionDecl& function,
                                 const std::vector<Argument>& arguments) {
  for (unsigned i = 0; i < std::min<std::size_t>(arguments.size(), function.getNumParams()); ++i) {
    const clang::ParmVarDecl& parameter = *function.getParamDecl(i);
    Value value = Opaque{};
    if (const auto* integer = std::get_if<std::int64_t>(&arguments[i])) {
      value = Ints(*integer);
    } else if (const auto* buffer = std::get_if<Buffer>(&arguments[i])) {
      const clang::QualType pointee = parameter.getType()->getPointeeType();
      const auto limit = buffer_bytes_.find(buffer->id);
      const LayoutPtr layout =
          pointee.isNull() || pointee->isIncompleteType()
              ? std::make_shared<Layout>(Layout{.bytes = 1, .element = {}, .fields = {}})
              : layouts_.of(pointee);
      const int array = array_of({.space = Array::Space::Global,
                                  .name = parameter.getNameAsString(),
                                  .decl = &parameter,
                                  .buffer = buffer->id,
                                  .element_bytes = unit_bytes(*layout)},
                                 limit != buffer_bytes_.end() ? limit->second : -1);
      value = Place{array, Ints(buffer->offset), layout};
    }
    frame.variables[&parameter].value = std::move(value);
  }
}

void Interpreter::step(const clang::Stmt& statement) {
  if (++steps_ > step_limit_) {
    unknown(statement, "the evaluation takes too many steps");
  }
}

void Interpreter::unknown(const clang::Stmt& where, const std::string& reason) const {
  throw Failure{Failure::Kind::Unknown, where_is(kernel_, where) + reason};
}

void Interpreter::fault(const clang::Stmt& where, const std::string& reason) const {
  throw Failure{Failure::Kind::Fault, where_is(kernel_, where) + reason};
}

const Ints& Interpreter::ints(const Value& value, const clang::Stmt& where) const {
  if (const auto* found = std::get_if<Ints>(&value)) {
    return *found;
  }
  const auto* why = std::get_if<Unknown>(&value);
  unknown(where, why != nullptr ? why->reason : "a value that is not an integer decides here");
}

const Place& Interpreter::place(const Value& value, const clang::Stmt& where) const {
  if (const auto* found = std::get_if<Place>(&value)) {
    return *found;
  }
  const auto* why = std::get_if<Unknown>(&value);
  unknown(where, why != nullptr ? why->reason : "it is not known where this points");
}

Mask Interpreter::truth(const Value& value, const clang::Stmt& where) const {
  const Ints& condition = ints(value, where);
  if (condition.uniform()) {
    return condition[0] != 0 ? mask_ : Mask(lanes_, false);
  }
  Mask result(condition.values());
  result &= mask_;
  return result;
}

Value Interpreter::merged(const Value& ours, const Value& others) const {
  if (mask_.all() || ours == others) {
    return ours;
  }
  if (const auto *a = std::get_if<Ints>(&ours), *b = std::get_if<Ints>(&others); a && b) {
    return blend(mask_, *a, *b);
  }
  if (const auto *a = std::get_if<Ring>(&ours), *b = std::get_if<Ring>(&others); a && b) {
    return blend(mask_, *a, *b);
  }
  if (std::holds_alternative<Packed>(ours) || std::holds_alternative<Packed>(others)) {
    return merged_registers(ours, others);
  }
  if (const auto *a = std::get_if<Place>(&ours), *b = std::get_if<Place>(&others);
      a && b && a->array == b->array && a->layout == b->layout) {
    return Place{a->array, blend(mask_, a->offset, b->offset), a->layout};
  }
  if (const auto *a = std::get_if<Record>(&ours), *b = std::get_if<Record>(&others);
      a && b && a->fields.size() == b->fields.size()) {
    Record result;
    for (std::size_t i = 0; i < a->fields.size(); ++i) {
      result.fields.push_back(merged(a->fields[i], b->fields[i]));
    }
    return result;
  }
  return Unknown{"threads disagree on what this value is"};
}

/// Where one of two values is no register, its threads have a register that is not known.
Value Interpreter::merged_registers(const Value& ours, const Value& others) const {
  const auto* a = std::get_if<Packed>(&ours);
  const auto* b = std::get_if<Packed>(&others);
  const auto part = [&](const Packed* packed, std::size_t i) {
    return packed != nullptr && i < packed->parts.size() ? packed->parts[i] : Ring::nothing(lanes_);
  };
  const std::size_t parts =
      std::max(a == nullptr ? 0 : a->parts.size(), b == nullptr ? 0 : b->parts.size());
  Packed result;
  for (std::size_t i = 0; i < parts; ++i) {
    result.parts.push_back(blend(mask_, part(a, i), part(b, i)));
  }
  return result;
}

const Ring& Interpreter::ring(const Value& value, const clang::Stmt& where) const {
  if (const auto* found = std::get_if<Ring>(&value)) {
    return *found;
  }
  const auto* why = std::get_if<Unknown>(&value);
  unknown(where, why != nullptr ? why->reason : "this float is not followed");
}

int Interpreter::unit_bytes(const Layout& layout) const {
  if (layout.kind == Layout::Kind::Array) {
    return unit_bytes(*layout.element);
  }
  const bool scalars = memory_ != nullptr && is_vector(layout);
  return static_cast<int>(scalars ? layout.fields.begin()->second.second->bytes : layout.bytes);
}

int Interpreter::array_of(Array array, std::int64_t bytes, int parent) {
  const bool global = array.space == Array::Space::Global && array.buffer >= 0;
  const auto key = global ? std::pair<const void*, int>(nullptr, array.buffer)
                          : std::pair<const void*, int>(array.decl, parent);
  const auto [entry, added] = array_ids_.try_emplace(key, static_cast<int>(arrays_.size()));
  if (added) {
    arrays_.push_back(std::move(array));
    array_states_.emplace_back();
  }
  resize(entry->second, bytes);
  return entry->second;
}

void Interpreter::resize(int array, std::int64_t bytes) {
  array_states_[array].bytes = bytes;
  arrays_[array].elements = bytes < 0 ? -1 : bytes / arrays_[array].element_bytes;
}

Place Interpreter::member_array(const Place& object, const clang::FieldDecl& field,
                                const clang::Stmt& where) {
  const auto& [offset, layout] = object.layout->fields.at(&field);
  const std::int64_t record_bytes = object.layout->bytes;
  const std::int64_t records = array_states_[object.array].bytes / record_bytes;
  if (records < 1) {
    fault(where, arrays_[object.array].name + " is smaller than the struct that it holds");
  }
  array_states_[object.array].split = true;
  const std::int64_t bytes = layout->bytes;
  const auto known = array_ids_.find({&field, object.array});
  int id = 0;
  if (known != array_ids_.end()) {
    id = known->second;
    resize(id, records * bytes);
  } else {
    id = array_of({.space = arrays_[object.array].space,
                   .name = arrays_[object.array].name + "." + field.getNameAsString(),
                   .decl = &field,
                   .element_bytes = unit_bytes(*layout)},
                  records * bytes, object.array);
  }
  return {id, map(object.offset, [=](std::int64_t at) { return at / record_bytes * bytes; }),
          layout};
}

/// The members of a struct of the file are arrays of their own, but for those in global memory.
bool Interpreter::has_own_array(const Place& object, const clang::FieldDecl& field) const {
  const auto& sources = kernel_.ast().getSourceManager();
  return arrays_[object.array].space != Array::Space::Global &&
         sources.isInMainFile(sources.getExpansionLoc(field.getLocation()));
}

void Interpreter::touch(const Place& at, bool write, const clang::Expr& site, bool in_flight) {
  if (!mask_.any()) {
    return;
  }
  ArrayState& state = array_states_[at.array];
  const Array& array = arrays_[at.array];
  state.accessed = true;
  if (state.split) {
    unknown(site, array.name + " is accessed both as a whole and by its members");
  }
  const std::int64_t bytes = at.layout->bytes;
  const std::int64_t limit = state.bytes >= 0 ? state.bytes - bytes : INT32_MAX;
  if (!within(at.offset, 0, limit) && !within_active(at.offset, 0, limit)) {
    fault(site, "an index lies outside " + array.name);
  }
  const std::int64_t unit = array.element_bytes;
  if (bytes % unit != 0) {
    unknown(site, "part of an element of " + array.name + " is accessed");
  }
  if (!multiples(at.offset, at.layout->align)) {
    fault(site, "a misaligned access to " + array.name);
  }
  const Ints elements = divided(at.offset, unit);
  if (observer_ != nullptr) {
    observer_->access({.array = at.array,
                       .write = write,
                       .site = &site,
                       .width = static_cast<int>(bytes / unit),
                       .in_flight = in_flight,
                       .elements = &elements,
                       .active = &mask_});
  }
}

Value Interpreter::load(const Reference& from, const clang::Expr& site) {
  const clang::QualType type = site.getType();
  const bool opaque = type->isFloatingType() || type->isRecordType();
  if (from.variable == nullptr) {
    touch(from.place, false, site);
    if (memory_ != nullptr && opaque) {
      return load_followed(from.place, type, site);
    }
    if (memory_ != nullptr && is_register(from.place, type)) {
      return load_register(from.place);
    }
    return opaque ? Value(Opaque{}) : Unknown{"an integer read from memory decides here"};
  }
  const Value& value = from.variable->value;
  if (from.field < 0) {
    return value;
  }
  if (const auto* record = std::get_if<Record>(&value)) {
    return record->fields[from.field];
  }
  return opaque ? Value(Opaque{}) : Unknown{"an integer read from memory decides here"};
}

void Interpreter::store(const Reference& to, const Value& value, const clang::Expr& site) {
  if (to.variable == nullptr) {
    touch(to.place, true, site);
    if (memory_ != nullptr) {
      store_followed(to.place, site.getType(), value, site);
    }
  } else if (to.field < 0) {
    to.variable->value = merged(value, to.variable->value);
  } else if (auto* record = std::get_if<Record>(&to.variable->value)) {
    record->fields[to.field] = merged(value, record->fields[to.field]);
  }
}

namespace {

Place member_at(const Place& object, const clang::FieldDecl& field) {
  const auto& [offset, layout] = object.layout->fields.at(&field);
  return {object.array, combine(object.offset, Ints(offset), std::plus<std::int64_t>{}), layout};
}

} // namespace

Value Interpreter::load_followed(const Place& from, clang::QualType type, const clang::Expr& site) {
  if (const clang::RecordDecl* record = type->getAsRecordDecl()) {
    Record result;
    for (const clang::FieldDecl* field : record->fields()) {
      result.fields.push_back(load_followed(member_at(from, *field), field->getType(), site));
    }
    return result;
  }
  if (is_register(from, type)) {
    return load_register(from);
  }
  const Array& array = arrays_[from.array];
  if (!type->isFloatingType() || from.layout->bytes != array.element_bytes) {
    return Unknown{"an element of " + array.name + " is not followed"};
  }
  return memory_->load(from.array, array, divided(from.offset, array.element_bytes), mask_);
}

void Interpreter::store_followed(const Place& to, clang::QualType type, const Value& value,
                                 const clang::Expr& site) {
  const Array& array = arrays_[to.array];
  if (const auto* packed = std::get_if<Packed>(&value); packed && is_register(to, type)) {
    return store_register(to, *packed);
  }
  const auto* integer = std::get_if<Ints>(&value);
  if (integer != nullptr && array.space == Array::Space::Local && is_register(to, type)) {
    return store_register(to, Packed{{Ring{*integer, nullptr}}});
  }
  const auto* fields = std::get_if<Record>(&value);
  if (const clang::RecordDecl* record = type->getAsRecordDecl(); record && fields) {
    for (const clang::FieldDecl* field : record->fields()) {
      store_followed(member_at(to, *field), field->getType(),
                     fields->fields[field->getFieldIndex()], site);
    }
  } else if (type->isFloatingType() && to.layout->bytes == array.element_bytes) {
    memory_->store(to.array, array, divided(to.offset, array.element_bytes), ring(value, site),
                   mask_);
  } else if (array.space != Array::Space::Global) {
    memory_->forget(to.array);
  } else {
    unknown(site, "what is written to " + array.name + " is not followed");
  }
}

/// An array's elements and those of its members.
void Interpreter::forget_memory(int array) {
  memory_->forget(array);
  for (const auto& [key, id] : array_ids_) {
    if (key.first != nullptr && key.second == array) {
      forget_memory(id);
    }
  }
}

Ints Interpreter::normalised(const Ints& value, clang::QualType type, const clang::Stmt& where,
                             bool overflow_is_unknown) const {
  const bool plain = type.getTypePtr() == kernel_.ast().IntTy.getTypePtr(); // the common case, fast
  const unsigned bits = plain ? 32 : kernel_.ast().getIntWidth(type);
  if (bits >= 64) {
    return value;
  }
  const bool is_signed = type->isSignedIntegerOrEnumerationType();
  const std::int64_t low = is_signed ? -(std::int64_t{1} << (bits - 1)) : 0;
  const std::int64_t high = is_signed ? -low - 1 : (std::int64_t{1} << bits) - 1;
  if (within(value, low, high)) {
    return value;
  }
  if (is_signed && overflow_is_unknown && !within_active(value, low, high)) {
    unknown(where, "the integer overflows");
  }
  return map(value, [=](std::int64_t v) {
    const std::int64_t wrapped = v & ((std::int64_t{1} << bits) - 1);
    return is_signed && wrapped > high ? wrapped - (std::int64_t{1} << bits) : wrapped;
  });
}

bool Interpreter::within_active(const Ints& values, std::int64_t low, std::int64_t high) const {
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    if (mask_[lane] && (values[lane] < low || values[lane] > high)) {
      return false;
    }
  }
  return true;
}

/// Whether the active lanes are multiples of `align`, a power of two.
bool Interpreter::multiples(const Ints& values, std::int64_t align) const {
  const std::int64_t rest = align - 1;
  std::int64_t all = 0;
  for (const std::int64_t value : values.values()) {
    all |= value;
  }
  if ((all & rest) == 0) {
    return true;
  }
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    if (mask_[lane] && (values[lane] & rest) != 0) {
      return false;
    }
  }
  return true;
}

Variable* Interpreter::builtin(const clang::VarDecl& variable) {
  const auto [entry, added] = builtin_of_.try_emplace(&variable, nullptr);
  const auto& sources = kernel_.ast().getSourceManager();
  if (added && variable.hasGlobalStorage() &&
      !sources.isInMainFile(sources.getExpansionLoc(variable.getLocation()))) {
    const auto found = builtins_.find(variable.getNameAsString());
    entry->second = found == builtins_.end() ? nullptr : &found->second;
  }
  return entry->second;
}

} // namespace evo
