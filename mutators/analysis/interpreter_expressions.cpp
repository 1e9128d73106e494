#include <algorithm>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/TypeLoc.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/interpreter.hpp"

namespace evo {
namespace {

/// An expression that only wraps another.
const clang::Expr* unwrapped(const clang::Expr& expression) {
  const clang::Expr* inner = expression.IgnoreParens();
  if (const auto* full = clang::dyn_cast<clang::FullExpr>(inner)) {
    return unwrapped(*full->getSubExpr());
  }
  if (const auto* temporary = clang::dyn_cast<clang::MaterializeTemporaryExpr>(inner)) {
    return unwrapped(*temporary->getSubExpr());
  }
  if (const auto* bound = clang::dyn_cast<clang::CXXBindTemporaryExpr>(inner)) {
    return unwrapped(*bound->getSubExpr());
  }
  if (const auto* argument = clang::dyn_cast<clang::CXXDefaultArgExpr>(inner)) {
    return unwrapped(*argument->getExpr());
  }
  return inner;
}

bool is_integer(clang::QualType type) {
  return type->isIntegralOrEnumerationType();
}

bool is_copy(const clang::CXXConstructExpr& expression) {
  return expression.getNumArgs() == 1 && expression.getConstructor()->isCopyOrMoveConstructor();
}

/// What cudaMalloc promises.
constexpr std::int64_t array_alignment = 256;

/// A pointer as a number.
bool is_address(const clang::Expr& expression) {
  const auto* cast = clang::dyn_cast<clang::CastExpr>(expression.IgnoreParenImpCasts());
  return cast != nullptr && cast->getCastKind() == clang::CK_PointerToIntegral;
}

/// Calls of CUDA's functions that move one value through a pointer.
bool is_load(llvm::StringRef name) {
  return name == "__ldg" || name == "__ldcs" || name == "__ldcg";
}
bool is_store(llvm::StringRef name) {
  return name == "__stcs" || name == "__stcg";
}
/// A whole number as a ring element.
Value followed(const clang::FloatingLiteral& literal) {
  llvm::APSInt number(64, false);
  bool exact = false;
  literal.getValue().convertToInteger(number, llvm::APFloat::rmTowardZero, &exact);
  return exact ? Value(Ring{number.getSExtValue(), nullptr})
               : Value(Unknown{"a number that is not whole is not followed"});
}

bool is_float_or_double(clang::QualType type) {
  return type->isSpecificBuiltinType(clang::BuiltinType::Float) ||
         type->isSpecificBuiltinType(clang::BuiltinType::Double);
}

/// To a shorter type and back. Ring elements are not rounded: what that costs, running tells.
bool is_rounding(llvm::StringRef name) {
  return name == "__float2half_rn" || name == "__half2float" || name == "__float2bfloat16_rn" ||
         name == "__bfloat162float";
}

/// Whether a register holds one number, as far as anything gave it any.
bool is_single(const Packed& packed, std::size_t lanes) {
  return !packed.parts.empty() &&
         std::all_of(packed.parts.begin() + 1, packed.parts.end(), [&](const Ring& part) {
           for (std::size_t lane = 0; lane < lanes; ++lane) {
             if (part.is_defined_in(lane)) {
               return false;
             }
           }
           return true;
         });
}

bool is_fence(llvm::StringRef name) {
  return name == "__syncwarp" || name == "__threadfence" || name == "__threadfence_block";
}

} // namespace

Value Interpreter::rvalue(const clang::Expr& expression) {
  const clang::Expr& inner = *unwrapped(expression);
  step(inner);
  return evaluate(inner);
}

Value Interpreter::value_of(const clang::Expr& expression) {
  return expression.isGLValue() ? load(lvalue(expression), expression) : rvalue(expression);
}

Value Interpreter::evaluate(const clang::Expr& expression) {
  if (const auto* literal = clang::dyn_cast<clang::IntegerLiteral>(&expression)) {
    return Ints(static_cast<std::int64_t>(literal->getValue().getLimitedValue()));
  }
  if (const auto* cast_expression = clang::dyn_cast<clang::CastExpr>(&expression)) {
    return cast(*cast_expression);
  }
  if (const auto* operation = clang::dyn_cast<clang::BinaryOperator>(&expression)) {
    return binary(*operation);
  }
  if (const auto* operation = clang::dyn_cast<clang::UnaryOperator>(&expression)) {
    return unary(*operation);
  }
  if (const auto* choice = clang::dyn_cast<clang::ConditionalOperator>(&expression)) {
    return conditional(*choice->getCond(), *choice->getTrueExpr(), *choice->getFalseExpr(),
                       expression);
  }
  if (const auto* constructor = clang::dyn_cast<clang::CXXConstructExpr>(&expression)) {
    return construct(*constructor);
  }
  if (const auto* list = clang::dyn_cast<clang::InitListExpr>(&expression)) {
    return initialiser_list(*list);
  }
  if (const auto* call_expression = clang::dyn_cast<clang::CallExpr>(&expression)) {
    const auto result = call(*call_expression);
    const auto* reference = std::get_if<Reference>(&result);
    const auto* value = std::get_if<Value>(&result);
    return reference != nullptr ? load(*reference, expression)
           : value != nullptr   ? *value
                                : Value(Unknown{"the function returns nothing"});
  }
  if (const auto* trait = clang::dyn_cast<clang::UnaryExprOrTypeTraitExpr>(&expression)) {
    return size(*trait);
  }
  if (const auto* literal = clang::dyn_cast<clang::CXXBoolLiteralExpr>(&expression)) {
    return Ints(literal->getValue());
  }
  if (const auto* literal = clang::dyn_cast<clang::CharacterLiteral>(&expression)) {
    return Ints(literal->getValue());
  }
  if (const auto* literal = clang::dyn_cast<clang::FloatingLiteral>(&expression)) {
    return memory_ != nullptr ? followed(*literal) : Value(Opaque{});
  }
  if (clang::isa<clang::CXXNullPtrLiteralExpr>(expression)) {
    return Unknown{"a null pointer decides here"};
  }
  if (clang::isa<clang::ImplicitValueInitExpr>(expression) ||
      clang::isa<clang::CXXScalarValueInitExpr>(expression)) {
    return zero(expression.getType());
  }
  if (clang::isa<clang::CXXThisExpr>(expression) && frames_.back().object) {
    return *frames_.back().object;
  }
  if (const auto* argument = clang::dyn_cast<clang::SubstNonTypeTemplateParmExpr>(&expression)) {
    if (!values_.empty()) {
      unknown(expression, "a template argument does not follow a changed constant");
    }
    return rvalue(*argument->getReplacement());
  }
  if (const auto* reference = clang::dyn_cast<clang::DeclRefExpr>(&expression)) {
    if (const auto* function = clang::dyn_cast<clang::FunctionDecl>(reference->getDecl())) {
      return function;
    }
    if (const auto* enumerator = clang::dyn_cast<clang::EnumConstantDecl>(reference->getDecl())) {
      const clang::Expr* written = enumerator->getInitExpr();
      return written != nullptr ? rvalue(*written)
                                : Value(Ints(enumerator->getInitVal().getExtValue()));
    }
  }
  if (const auto* field = clang::dyn_cast<clang::MemberExpr>(&expression);
      field != nullptr && field->getBase()->isPRValue() && !field->isArrow()) {
    Variable temporary{.value = rvalue(*field->getBase()), .refers = {}};
    const auto* member_decl = clang::dyn_cast<clang::FieldDecl>(field->getMemberDecl());
    if (member_decl != nullptr) {
      return load({&temporary, static_cast<int>(member_decl->getFieldIndex()), {}}, expression);
    }
  }
  if (expression.isGLValue()) {
    return load(lvalue(expression), expression);
  }
  unknown(expression, std::string("a ") + expression.getStmtClassName() + " is not followed");
}

Reference Interpreter::lvalue(const clang::Expr& expression) {
  const clang::Expr& inner = *unwrapped(expression);
  step(inner);
  if (const auto* reference = clang::dyn_cast<clang::DeclRefExpr>(&inner)) {
    if (const auto* declaration = clang::dyn_cast<clang::VarDecl>(reference->getDecl())) {
      return variable(*declaration, inner);
    }
  }
  if (const auto* field = clang::dyn_cast<clang::MemberExpr>(&inner)) {
    return member(*field);
  }
  if (const auto* element = clang::dyn_cast<clang::ArraySubscriptExpr>(&inner)) {
    return subscript(*element);
  }
  if (const auto* operation = clang::dyn_cast<clang::UnaryOperator>(&inner)) {
    if (operation->getOpcode() == clang::UO_Deref) {
      return {nullptr, -1, place(rvalue(*operation->getSubExpr()), inner)};
    }
    if (operation->isPrefix() && operation->isIncrementDecrementOp()) {
      unary(*operation);
      return lvalue(*operation->getSubExpr());
    }
  }
  if (const auto* call_expression = clang::dyn_cast<clang::CallExpr>(&inner)) {
    const auto result = call(*call_expression);
    if (const auto* reference = std::get_if<Reference>(&result)) {
      return *reference;
    }
  }
  if (const auto* cast_expression = clang::dyn_cast<clang::CastExpr>(&inner)) {
    Reference result = lvalue(*cast_expression->getSubExpr());
    if (cast_expression->getCastKind() == clang::CK_NoOp) {
      return result;
    }
    if (cast_expression->getCastKind() == clang::CK_LValueBitCast && result.variable == nullptr) {
      result.place.layout = pointee(*cast_expression);
      return result;
    }
  }
  unknown(inner, std::string("a ") + inner.getStmtClassName() + " is not followed as a place");
}

Reference Interpreter::variable(const clang::VarDecl& declaration, const clang::Expr& site) {
  auto& variables = frames_.back().variables;
  if (const auto found = variables.find(&declaration); found != variables.end()) {
    const auto* refers = std::get_if<Reference>(&found->second.refers);
    return refers != nullptr ? *refers : Reference{&found->second, -1, {}};
  }
  if (const auto assigned = values_.find(&declaration); assigned != values_.end()) {
    Variable& known = constants_[&declaration];
    known.value = Ints(assigned->second);
    return {&known, -1, {}};
  }
  if (declaration.hasAttr<clang::CUDASharedAttr>()) {
    return shared(declaration);
  }
  if (Variable* known = builtin(declaration)) {
    return {known, -1, {}};
  }
  if (declaration.hasGlobalStorage()) {
    return global(declaration, site);
  }
  const clang::Expr* initialiser = declaration.getInit();
  if (initialiser != nullptr && declaration.getType()->isReferenceType()) {
    return lvalue(*initialiser);
  }
  if (initialiser != nullptr && declaration.getType().isConstQualified()) {
    Variable& known = variables[&declaration];
    known.value = rvalue(*initialiser);
    return {&known, -1, {}};
  }
  unknown(site, "the value of " + declaration.getNameAsString() + " is not known here");
}

Reference Interpreter::shared(const clang::VarDecl& declaration) {
  const LayoutPtr layout = layouts_.of(declaration);
  const bool dynamic = layout->kind == Layout::Kind::Array && layout->count < 0;
  const int array = array_of({.space = Array::Space::Shared,
                              .name = declaration.getNameAsString(),
                              .decl = &declaration,
                              .element_bytes = unit_bytes(*layout)},
                             dynamic ? dynamic_shared_bytes_ : layout->bytes);
  return {nullptr, -1, Place{array, 0, layout}};
}

Reference Interpreter::global(const clang::VarDecl& declaration, const clang::Expr& site) {
  if (const auto found = constants_.find(&declaration); found != constants_.end()) {
    return {&found->second, -1, {}};
  }
  const clang::Expr* initialiser = declaration.getAnyInitializer();
  if (initialiser == nullptr || !declaration.getType().isConstQualified() ||
      !is_integer(declaration.getType())) {
    unknown(site, "the variable " + declaration.getNameAsString() + " is not followed");
  }
  const Mask active = mask_;
  mask_ = Mask(lanes_);
  frames_.push_back(
      Frame{.variables = {}, .returned = Mask(lanes_, false), .result = {}, .object = {}});
  Value value = rvalue(*initialiser);
  frames_.pop_back();
  mask_ = active;
  Variable& known = constants_[&declaration];
  known.value = std::move(value);
  return {&known, -1, {}};
}

Reference Interpreter::member(const clang::MemberExpr& expression) {
  const auto* field = clang::dyn_cast<clang::FieldDecl>(expression.getMemberDecl());
  if (field == nullptr) {
    const auto* constant = clang::dyn_cast<clang::VarDecl>(expression.getMemberDecl());
    if (constant == nullptr) {
      unknown(expression, "this member is not followed");
    }
    return variable(*constant, expression);
  }
  Reference base = expression.isArrow()
                       ? Reference{nullptr, -1, place(rvalue(*expression.getBase()), expression)}
                       : lvalue(*expression.getBase());
  if (base.variable != nullptr) {
    if (base.field >= 0) {
      unknown(expression, "a struct in a struct is not followed");
    }
    return {base.variable, static_cast<int>(field->getFieldIndex()), {}};
  }
  if (base.place.layout->kind != Layout::Kind::Record ||
      !base.place.layout->fields.contains(field)) {
    unknown(expression, "this member is not followed");
  }
  if (has_own_array(base.place, *field)) {
    return {nullptr, -1, member_array(base.place, *field, expression)};
  }
  const auto& [offset, layout] = base.place.layout->fields.at(field);
  return {nullptr, -1,
          Place{base.place.array,
                combine(base.place.offset, Ints(offset), std::plus<std::int64_t>{}), layout}};
}

Reference Interpreter::subscript(const clang::ArraySubscriptExpr& expression) {
  const clang::Expr& base = *unwrapped(*expression.getBase());
  const auto* decay = clang::dyn_cast<clang::ImplicitCastExpr>(&base);
  const bool of_array = decay != nullptr && decay->getCastKind() == clang::CK_ArrayToPointerDecay;
  Place start = of_array ? lvalue(*decay->getSubExpr()).place : place(rvalue(base), expression);
  const Value index_value = rvalue(*expression.getIdx());
  const Ints& index = ints(index_value, expression);
  if (of_array) {
    if (start.layout == nullptr || start.layout->kind != Layout::Kind::Array) {
      unknown(expression, "this array is not followed");
    }
    const std::int64_t last = start.layout->count - 1;
    if (last >= 0 && !within(index, 0, last) && !within_active(index, 0, last)) {
      fault(expression, "an index lies outside the " + std::to_string(last + 1) + " elements of " +
                            arrays_[start.array].name);
    }
    start.layout = start.layout->element;
  }
  const std::int64_t bytes = start.layout->bytes;
  return {nullptr, -1,
          Place{start.array,
                combine(start.offset, index,
                        [=](std::int64_t at, std::int64_t i) { return at + i * bytes; }),
                start.layout}};
}

LayoutPtr Interpreter::pointee(const clang::CastExpr& expression) {
  if (const auto* written = clang::dyn_cast<clang::ExplicitCastExpr>(&expression)) {
    const clang::TypeLoc type = written->getTypeInfoAsWritten()->getTypeLoc().getUnqualifiedLoc();
    if (const auto pointer = type.getAs<clang::PointerTypeLoc>();
        pointer && !pointer.getPointeeLoc().getType()->isVoidType()) {
      return layouts_.of(pointer.getPointeeLoc());
    }
    if (type.getAs<clang::ReferenceTypeLoc>()) {
      return layouts_.of(type);
    }
  }
  const clang::QualType type = expression.getType()->getPointeeType();
  return type->isIncompleteType()
             ? std::make_shared<Layout>(Layout{.bytes = 1, .element = {}, .fields = {}})
             : layouts_.of(type);
}

Value Interpreter::cast(const clang::CastExpr& expression) {
  const clang::Expr& sub = *expression.getSubExpr();
  switch (expression.getCastKind()) {
  case clang::CK_LValueToRValue:
    return clang::isa<clang::ConditionalOperator>(unwrapped(sub)) ? rvalue(sub) // of two variables
                                                                  : load(lvalue(sub), sub);
  case clang::CK_ArrayToPointerDecay: {
    Place array = lvalue(sub).place;
    if (array.layout == nullptr || array.layout->kind != Layout::Kind::Array) {
      unknown(expression, "this array is not followed");
    }
    array.layout = array.layout->element;
    return array;
  }
  case clang::CK_BitCast: {
    Value value = rvalue(sub);
    if (auto* pointer = std::get_if<Place>(&value)) {
      pointer->layout = pointee(expression);
    }
    return value;
  }
  case clang::CK_IntegralCast: {
    const Value value = rvalue(sub);
    const auto* integers = std::get_if<Ints>(&value);
    return integers != nullptr ? normalised(*integers, expression.getType(), expression, false)
                               : value;
  }
  case clang::CK_IntegralToBoolean: {
    const Value value = rvalue(sub);
    const auto* integers = std::get_if<Ints>(&value);
    return integers == nullptr
               ? value
               : Value(combine(*integers, Ints(0), [](auto v, auto) { return v != 0; }));
  }
  case clang::CK_IntegralToFloating: {
    const Value value = rvalue(sub);
    const auto* integers = std::get_if<Ints>(&value);
    return memory_ != nullptr && integers != nullptr ? Value(Ring{*integers, nullptr})
                                                     : Value(Opaque{});
  }
  case clang::CK_FloatingCast: {
    Value value = rvalue(sub);
    const bool kept = is_float_or_double(sub.getType()) && is_float_or_double(expression.getType());
    return memory_ != nullptr && kept ? value : Value(Opaque{});
  }
  case clang::CK_FloatingToIntegral:
  case clang::CK_FloatingToBoolean:
    rvalue(sub);
    return Unknown{"a float decides here"};
  case clang::CK_NullToPointer:
    return Unknown{"a null pointer decides here"};
  case clang::CK_NoOp:
  case clang::CK_ConstructorConversion:
  case clang::CK_FunctionToPointerDecay:
  case clang::CK_BuiltinFnToFnPtr:
    return rvalue(sub);
  case clang::CK_ToVoid:
    rvalue(sub);
    return Opaque{};
  default:
    unknown(expression,
            std::string("a cast (") + expression.getCastKindName() + ") is not followed");
  }
}

Value Interpreter::unary(const clang::UnaryOperator& expression) {
  const clang::Expr& sub = *expression.getSubExpr();
  if (expression.isIncrementDecrementOp()) {
    const Reference target = lvalue(sub);
    const Value before = load(target, sub);
    const Value after = arithmetic(expression.isIncrementOp() ? clang::BO_Add : clang::BO_Sub,
                                   before, Ints(1), sub.getType(), expression);
    store(target, after, sub);
    return expression.isPrefix() ? after : before;
  }
  switch (expression.getOpcode()) {
  case clang::UO_AddrOf: {
    const Value function =
        unwrapped(sub)->getType()->isFunctionType() ? rvalue(sub) : Value(Opaque{});
    if (std::holds_alternative<const clang::FunctionDecl*>(function)) {
      return function;
    }
    const Reference target = lvalue(sub);
    return target.variable == nullptr
               ? Value(target.place)
               : Value(Unknown{"the address of a local variable decides here"});
  }
  case clang::UO_Deref:
    return load(lvalue(expression), expression);
  case clang::UO_Plus:
    return rvalue(sub);
  case clang::UO_Minus:
    return arithmetic(clang::BO_Sub, Ints(0), rvalue(sub), expression.getType(), expression);
  case clang::UO_Not:
    return arithmetic(clang::BO_Xor, Ints(-1), rvalue(sub), expression.getType(), expression);
  case clang::UO_LNot:
    return arithmetic(clang::BO_EQ, Ints(0), rvalue(sub), expression.getType(), expression);
  default:
    unknown(expression, "this operator is not followed");
  }
}

/// What stands for an address in global memory of which only the remainder by some small power of
/// two is asked: buffers begin at multiples of it.
Value Interpreter::misalignment(const clang::Expr& address, const clang::BinaryOperator& asked) {
  const Value divisor = rvalue(*asked.getRHS());
  const Ints& bytes = ints(divisor, asked);
  if (!bytes.uniform() || shift_of(bytes[0]) < 0 || bytes[0] > array_alignment) {
    unknown(address, "an address decides here");
  }
  const auto& cast = *clang::cast<clang::CastExpr>(address.IgnoreParenImpCasts());
  const Value value = rvalue(*cast.getSubExpr());
  const Place& pointed = place(value, address);
  if (arrays_[pointed.array].space != Array::Space::Global) {
    unknown(address, "an address decides here");
  }
  return pointed.offset;
}

Value Interpreter::binary(const clang::BinaryOperator& expression) {
  if (expression.isAssignmentOp()) {
    return assign(expression);
  }
  if (expression.isLogicalOp()) {
    return logical(expression);
  }
  const Value left = is_address(*expression.getLHS()) && expression.getOpcode() == clang::BO_Rem
                         ? misalignment(*expression.getLHS(), expression)
                         : rvalue(*expression.getLHS());
  const Value right = rvalue(*expression.getRHS());
  return expression.getOpcode() == clang::BO_Comma
             ? right
             : arithmetic(expression.getOpcode(), left, right, expression.getType(), expression);
}

Value Interpreter::assign(const clang::BinaryOperator& expression) {
  const clang::Expr& left = *expression.getLHS();
  if (!expression.isCompoundAssignmentOp()) {
    Value value = rvalue(*expression.getRHS());
    store(lvalue(left), value, left);
    return value;
  }
  const auto& compound = *clang::cast<clang::CompoundAssignOperator>(&expression);
  const Value right = rvalue(*expression.getRHS());
  const Reference target = lvalue(left);
  Value before = load(target, left);
  const clang::QualType type = compound.getComputationResultType();
  if (auto* integers = std::get_if<Ints>(&before); integers != nullptr && is_integer(type)) {
    before = normalised(*integers, type, expression, false);
  }
  Value after =
      arithmetic(clang::BinaryOperator::getOpForCompoundAssignment(expression.getOpcode()), before,
                 right, type, expression);
  if (auto* integers = std::get_if<Ints>(&after)) {
    after = normalised(*integers, left.getType(), expression, false);
  }
  store(target, after, left);
  return after;
}

Value Interpreter::arithmetic(int opcode, const Value& left, const Value& right,
                              clang::QualType type, const clang::Expr& site) {
  if (type->isFloatingType()) {
    return memory_ != nullptr ? followed_arithmetic(opcode, left, right) : Value(Opaque{});
  }
  for (const Value* side : {&left, &right}) {
    if (std::holds_alternative<Unknown>(*side)) {
      return *side;
    }
    if (std::holds_alternative<Opaque>(*side) || std::holds_alternative<Ring>(*side)) {
      return Unknown{"a float decides here"};
    }
  }
  const auto* pointer = std::get_if<Place>(&left);
  const auto* other = std::get_if<Place>(&right);
  if (pointer != nullptr && other != nullptr) {
    if (pointer->array != other->array) {
      return Unknown{"pointers to different arrays decide here"};
    }
    const Value difference =
        arithmetic(opcode, pointer->offset, other->offset, kernel_.ast().LongTy, site);
    return opcode == clang::BO_Sub
               ? arithmetic(clang::BO_Div, difference, Ints(pointer->layout->bytes), type, site)
               : difference;
  }
  if (pointer != nullptr || other != nullptr) {
    const Place& base = pointer != nullptr ? *pointer : *other;
    const std::int64_t bytes = opcode == clang::BO_Sub ? -base.layout->bytes : base.layout->bytes;
    const Ints& index = ints(pointer != nullptr ? right : left, site);
    return Place{base.array,
                 combine(base.offset, index,
                         [=](std::int64_t at, std::int64_t i) { return at + i * bytes; }),
                 base.layout};
  }
  const Ints& a = ints(left, site);
  const Ints& b = ints(right, site);
  const auto in_lanes = [&](auto f) { return normalised(combine(a, b, f), type, site, true); };
  const auto check = [&](auto bad, const char* reason) {
    for (std::size_t lane = 0; lane < (b.uniform() ? 1 : lanes_); ++lane) {
      if (bad(b[lane]) && (b.uniform() ? mask_.any() : mask_[lane])) {
        fault(site, reason);
      }
    }
  };
  switch (opcode) {
  case clang::BO_Add:
    return in_lanes([](std::int64_t x, std::int64_t y) { return x + y; });
  case clang::BO_Sub:
    return in_lanes([](std::int64_t x, std::int64_t y) { return x - y; });
  case clang::BO_Mul:
    return in_lanes([](std::int64_t x, std::int64_t y) {
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) *
                                       static_cast<std::uint64_t>(y));
    });
  case clang::BO_Div:
    check([](std::int64_t y) { return y == 0; }, "a division by zero");
    return normalised(divided(a, b), type, site, true);
  case clang::BO_Rem:
    check([](std::int64_t y) { return y == 0; }, "a division by zero");
    return normalised(remainder(a, b), type, site, true);
  case clang::BO_Shl:
    check([](std::int64_t y) { return y < 0 || y > 31; }, "a shift by more than the type's bits");
    return in_lanes(
        [](std::int64_t x, std::int64_t y) { return x * (std::int64_t{1} << (y & 31)); });
  case clang::BO_Shr:
    check([](std::int64_t y) { return y < 0 || y > 31; }, "a shift by more than the type's bits");
    return in_lanes([](std::int64_t x, std::int64_t y) { return x >> (y & 31); });
  case clang::BO_And:
    return in_lanes([](std::int64_t x, std::int64_t y) { return x & y; });
  case clang::BO_Or:
    return in_lanes([](std::int64_t x, std::int64_t y) { return x | y; });
  case clang::BO_Xor:
    return in_lanes([](std::int64_t x, std::int64_t y) { return x ^ y; });
  case clang::BO_LT:
    return combine(a, b, [](std::int64_t x, std::int64_t y) { return x < y; });
  case clang::BO_GT:
    return combine(a, b, [](std::int64_t x, std::int64_t y) { return x > y; });
  case clang::BO_LE:
    return combine(a, b, [](std::int64_t x, std::int64_t y) { return x <= y; });
  case clang::BO_GE:
    return combine(a, b, [](std::int64_t x, std::int64_t y) { return x >= y; });
  case clang::BO_EQ:
    return combine(a, b, [](std::int64_t x, std::int64_t y) { return x == y; });
  case clang::BO_NE:
    return combine(a, b, [](std::int64_t x, std::int64_t y) { return x != y; });
  default:
    unknown(site, "this operator is not followed");
  }
}

Value Interpreter::followed_arithmetic(int opcode, const Value& left, const Value& right) const {
  Ring sides[2];
  for (const Value* side : {&left, &right}) {
    Ring& ring = sides[side == &left ? 0 : 1];
    if (const auto* known = std::get_if<Ring>(side)) {
      ring = *known;
    } else if (const auto* integers = std::get_if<Ints>(side)) { // the 0 in front of a minus
      ring.value = *integers;
    } else {
      return *side;
    }
  }
  switch (opcode) {
  case clang::BO_Add:
    return sides[0] + sides[1];
  case clang::BO_Sub:
    return sides[0] - sides[1];
  case clang::BO_Mul:
    return sides[0] * sides[1];
  default:
    return Unknown{"an operator on floats other than +, - and * is not followed"};
  }
}

Value Interpreter::logical(const clang::BinaryOperator& expression) {
  const bool conjunction = expression.getOpcode() == clang::BO_LAnd;
  const Mask active = mask_;
  const Value left_value = rvalue(*expression.getLHS());
  const Mask left = truth(left_value, expression);
  if (conjunction) {
    mask_ = left;
  } else {
    mask_ -= left;
  }
  Mask result = left;
  if (mask_.any()) {
    const Mask right = truth(rvalue(*expression.getRHS()), expression);
    conjunction ? result = right : result |= right;
  }
  mask_ = active;
  if (result == active || !result.any()) {
    return Ints(result.any());
  }
  std::vector<std::int64_t> lanes(lanes_);
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    lanes[lane] = result[lane];
  }
  return Ints(std::move(lanes));
}

Value Interpreter::conditional(const clang::Expr& condition, const clang::Expr& yes,
                               const clang::Expr& no, const clang::Expr& site) {
  const Value decision = rvalue(condition);
  // max(x, 0) written out: which of two values is taken does not matter where both are opaque.
  if (std::holds_alternative<Unknown>(decision) && site.getType()->isFloatingType() &&
      !yes.HasSideEffects(kernel_.ast()) && !no.HasSideEffects(kernel_.ast())) {
    rvalue(yes);
    rvalue(no);
    return memory_ != nullptr ? decision : Value(Opaque{});
  }
  const Mask active = mask_;
  const Mask chosen = truth(decision, condition);
  Value result = Unknown{"no thread evaluates this"};
  if (chosen.any()) {
    mask_ = chosen;
    result = value_of(yes);
  }
  if (chosen != active) {
    mask_ = active;
    mask_ -= chosen;
    const Value otherwise = value_of(no);
    result = chosen.any() ? merged(otherwise, result) : otherwise;
  }
  mask_ = active;
  return result;
}

Value Interpreter::construct(const clang::CXXConstructExpr& expression) {
  const clang::CXXConstructorDecl& constructor = *expression.getConstructor();
  if (is_copy(expression)) {
    const clang::Expr& source = *unwrapped(*expression.getArg(0));
    return value_of(source);
  }
  if (constructor.isTrivial()) {
    return expression.requiresZeroInitialization() ? zero(expression.getType())
                                                   : uninitialised(expression.getType());
  }
  const auto* definition =
      clang::dyn_cast_or_null<clang::CXXConstructorDecl>(constructor.getDefinition());
  if (definition == nullptr) {
    unknown(expression, "this constructor is not followed");
  }
  Frame frame{.variables = {}, .returned = Mask(lanes_, false), .result = {}, .object = {}};
  for (unsigned i = 0; i < expression.getNumArgs(); ++i) {
    frame.variables[definition->getParamDecl(i)].value = rvalue(*expression.getArg(i));
  }
  frames_.push_back(std::move(frame));
  Record record;
  for (const clang::CXXCtorInitializer* initialiser : definition->inits()) {
    record.fields.push_back(rvalue(*initialiser->getInit()));
  }
  execute(*definition->getBody());
  frames_.pop_back();
  return record;
}

Value Interpreter::initialiser_list(const clang::InitListExpr& expression) {
  if (!expression.getType()->isRecordType()) {
    if (expression.getNumInits() == 1) {
      return rvalue(*expression.getInit(0));
    }
    return zero(expression.getType());
  }
  Record record;
  for (const clang::Expr* field : expression.inits()) {
    record.fields.push_back(rvalue(*field));
  }
  return record;
}

Value Interpreter::zero(clang::QualType type) {
  if (is_integer(type)) {
    return Ints(0);
  }
  if (const clang::RecordDecl* declaration = type->getAsRecordDecl()) {
    Record record;
    for (const clang::FieldDecl* field : declaration->fields()) {
      record.fields.push_back(zero(field->getType()));
    }
    return record;
  }
  if (type->isPointerType()) {
    return Unknown{"a null pointer decides here"};
  }
  return memory_ != nullptr && type->isFloatingType() ? Value(Ring{}) : Value(Opaque{});
}

Value Interpreter::uninitialised(clang::QualType type) {
  if (memory_ != nullptr && type->isFloatingType()) {
    return Ring::nothing(lanes_);
  }
  const clang::RecordDecl* declaration = type->getAsRecordDecl();
  if (declaration == nullptr) {
    return zero(type);
  }
  Record record;
  for (const clang::FieldDecl* field : declaration->fields()) {
    record.fields.push_back(uninitialised(field->getType()));
  }
  return record;
}

/// Of what an operand of sizeof names, with the extents that its declaration writes.
LayoutPtr Interpreter::layout_as_written(const clang::Expr& operand) {
  const clang::Expr* inner = unwrapped(operand);
  if (const auto* reference = clang::dyn_cast<clang::DeclRefExpr>(inner)) {
    return layouts_.of(*reference->getDecl());
  }
  if (const auto* member = clang::dyn_cast<clang::MemberExpr>(inner)) {
    return layouts_.of(*member->getMemberDecl());
  }
  if (const auto* subscript = clang::dyn_cast<clang::ArraySubscriptExpr>(inner)) {
    const LayoutPtr array = layout_as_written(*subscript->getBase()->IgnoreParenImpCasts());
    if (array->kind == Layout::Kind::Array) {
      return array->element;
    }
  }
  return layouts_.of(operand.getType());
}

Value Interpreter::size(const clang::UnaryExprOrTypeTraitExpr& expression) {
  if (expression.getKind() != clang::UETT_SizeOf && expression.getKind() != clang::UETT_AlignOf) {
    unknown(expression, "this trait is not followed");
  }
  const LayoutPtr layout = expression.isArgumentType()
                               ? layouts_.of(expression.getArgumentTypeInfo()->getTypeLoc())
                               : layout_as_written(*expression.getArgumentExpr());
  return Ints(expression.getKind() == clang::UETT_SizeOf ? layout->bytes : layout->align);
}

std::variant<std::monostate, Value, Reference>
Interpreter::call(const clang::CallExpr& expression) {
  if (const auto* launch = clang::dyn_cast<clang::CUDAKernelCallExpr>(&expression)) {
    if (!on_launch_) {
      unknown(expression, "a launch is not followed here");
    }
    on_launch_(*launch);
    return Value(Opaque{});
  }
  const clang::FunctionDecl* function = expression.getDirectCallee();
  if (function == nullptr) {
    unknown(expression, "a call through a pointer is not followed");
  }
  const auto* method = clang::dyn_cast<clang::CXXMethodDecl>(function);
  if (method != nullptr && clang::isa<clang::CXXOperatorCallExpr>(expression) &&
      (method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator())) {
    const clang::Expr& source = *unwrapped(*expression.getArg(1));
    const Value value = source.isGLValue() ? load(lvalue(source), source) : rvalue(source);
    const Reference target = lvalue(*expression.getArg(0));
    store(target, value, *expression.getArg(0));
    return target;
  }
  if (const clang::FunctionDecl* definition = function->getDefinition();
      definition != nullptr && definition->hasBody()) {
    return call_body(*definition, expression);
  }
  return call_bodiless(*function, expression);
}

std::variant<std::monostate, Value, Reference>
Interpreter::call_body(const clang::FunctionDecl& function, const clang::CallExpr& expression) {
  if (frames_.size() > 64) {
    unknown(expression, "the recursion is too deep");
  }
  Frame frame{.variables = {}, .returned = Mask(lanes_, false), .result = {}, .object = {}};
  if (const auto* method = clang::dyn_cast<clang::CXXMemberCallExpr>(&expression)) {
    const clang::Expr& object = *method->getImplicitObjectArgument();
    const Reference self = object.getType()->isPointerType()
                               ? Reference{nullptr, -1, place(rvalue(object), expression)}
                               : lvalue(object);
    if (self.variable == nullptr) {
      frame.object = self.place;
    }
  } else if (clang::isa<clang::CXXOperatorCallExpr>(expression)) {
    unknown(expression, "an overloaded operator is not followed");
  }
  for (unsigned i = 0; i < function.getNumParams(); ++i) {
    const clang::Expr& argument = *expression.getArg(i);
    Variable parameter;
    if (function.getParamDecl(i)->getType()->isReferenceType() && argument.isGLValue() &&
        !clang::isa<clang::MaterializeTemporaryExpr>(argument.IgnoreParens())) {
      parameter.refers = lvalue(argument);
    } else {
      parameter.value = rvalue(argument);
    }
    frame.variables[function.getParamDecl(i)] = std::move(parameter);
  }
  frame.call = &expression;
  const Mask active = mask_;
  std::vector<Mask> loops;
  loops.swap(continued_);
  frames_.push_back(std::move(frame));
  execute(*function.getBody());
  auto result = std::move(frames_.back().result);
  frames_.pop_back();
  continued_.swap(loops);
  mask_ = active;
  return result;
}

Value Interpreter::followed_call(const std::string& name,
                                 const std::vector<Value>& arguments) const {
  if (name == "fmaf" || name == "__fmaf_rn") {
    return followed_arithmetic(clang::BO_Add,
                               followed_arithmetic(clang::BO_Mul, arguments[0], arguments[1]),
                               arguments[2]);
  }
  if (name == "__fadd_rn" || name == "__fmul_rn") {
    return followed_arithmetic(name == "__fadd_rn" ? clang::BO_Add : clang::BO_Mul, arguments[0],
                               arguments[1]);
  }
  if (is_rounding(name)) {
    return arguments[0];
  }
  if (name == "fabsf" || name == "fmaxf" || name == "fminf") { // of which only a scale is made
    return Ring::nothing(lanes_);
  }
  if (const auto* packed = std::get_if<Packed>(&arguments[0]);
      name == "__uint_as_float" && packed) {
    return is_single(*packed, lanes_) ? Value(packed->parts[0])
                                      : Unknown{"several numbers as one are not followed"};
  }
  if (name == "make_float2" || name == "make_float4" || name == "make_uint4") {
    return Record{arguments};
  }
  return Unknown{"what " + name + " gives is not followed"};
}

Value Interpreter::call_bodiless(const clang::FunctionDecl& function,
                                 const clang::CallExpr& expression) {
  const std::string name = function.getNameAsString();
  const clang::QualType type = expression.getType();
  if (name == "__syncthreads") {
    if (!mask_.all()) {
      fault(expression, "a barrier that not all threads of the block reach");
    }
    if (observer_ != nullptr) {
      observer_->barrier();
    }
    return Opaque{};
  }
  std::vector<Value> arguments;
  for (const clang::Expr* argument : expression.arguments()) {
    arguments.push_back(rvalue(*argument));
  }
  if (copies(name, arguments, expression)) {
    return Opaque{};
  }
  if (is_load(name)) {
    return load({nullptr, -1, place(arguments[0], expression)}, expression);
  }
  if (is_store(name)) {
    const Place& to = place(arguments[0], expression);
    touch(to, true, expression);
    if (memory_ != nullptr) {
      store_followed(to, expression.getArg(0)->getType()->getPointeeType(), arguments[1],
                     expression);
    }
    return Opaque{};
  }
  if ((name == "min" || name == "max") && is_integer(type)) {
    const bool least = name == "min";
    return combine(
        ints(arguments[0], expression), ints(arguments[1], expression),
        [=](std::int64_t a, std::int64_t b) { return least ? std::min(a, b) : std::max(a, b); });
  }
  if (is_fence(name)) {
    return Opaque{};
  }
  if (name == "__cvta_generic_to_shared") { // a number from here on, but nothing else than a place
    Place address = place(arguments[0], expression);
    address.layout = std::make_shared<Layout>(Layout{.bytes = 1, .element = {}, .fields = {}});
    return address;
  }
  if (const auto* followed_float = std::get_if<Ring>(arguments.empty() ? nullptr : &arguments[0]);
      name == "__float_as_uint" && followed_float != nullptr) {
    return Packed{{*followed_float}};
  }
  if (on_call_) {
    on_call_(function, arguments);
    return is_integer(type) ? Value(Ints(0)) : Value(Opaque{});
  }
  const bool through_pointers =
      std::ranges::any_of(expression.arguments(), [](const clang::Expr* argument) {
        return argument->getType()->isPointerType();
      });
  if (through_pointers || type->isVoidType()) {
    unknown(expression, "what " + name + " does is not followed");
  }
  if (is_integer(type)) {
    return Unknown{"the result of " + name + " decides here"};
  }
  return memory_ != nullptr ? followed_call(name, arguments) : Value(Opaque{});
}

} // namespace evo
