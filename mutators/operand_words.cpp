#include "mutators/operand_words.hpp"

#include <algorithm>
#include <iterator>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/TypeLoc.h>

#include "mutators/analysis/expressions.hpp"
#include "mutators/analysis/product_core.hpp"
#include "mutators/analysis/references.hpp"
#include "mutators/registry.hpp"
#include "mutators/split_texts.hpp"
#include "mutators/tile_alignment.hpp"
#include "mutators/workspace_size.hpp"

namespace evo {

using clang::dyn_cast;

std::optional<std::vector<Edit>> OperandWords::edits() {
  try {
    write();
    return std::move(edits_);
  } catch (const CannotWrite&) {
    return std::nullopt;
  }
}

void OperandWords::write() {
  texts_ = {{"threads", block_.written},
            {"lane", operands_.lane->getNameAsString()},
            {"tile_k", text(*operands_.left.tile_k, Binding::Product)},
            {"kernel", operands_.function->getNameAsString()},
            {"round_up", names_.fresh("round_up")},
            {"size", names_.fresh("size")},
            {"multiple", names_.fresh("multiple")},
            {"word", names_.fresh("word")},
            {"copy", names_.fresh("copy")},
            {"panel", names_.fresh("panel")},
            {"offset", names_.fresh("offset")},
            {"pair", names_.fresh("pair")},
            {"fragments", names_.fresh("fragments")},
            {"fragment", names_.fresh("fragment")}};
  texts_.merge(form());
  write_operand(operands_.left);
  write_operand(operands_.right);
  write_products();
  const Texts names = pass_names();
  const std::string passes = pass_text(operands_.left, names) + pass_text(operands_.right, names);
  const auto place = offset_before(kernel_, *operands_.function);
  insert(place ? *place : throw CannotWrite{},
         filled_in(split_texts::round_up_text, texts_) + constants_ + passes + "\n");
  write_entry();
  remove_helpers();
  removal_.unneeded_declarations({});
  std::ranges::copy(helpers_.edits(), std::back_inserter(edits_));
  std::ranges::copy(removal_.edits(), std::back_inserter(edits_));
  sort_edits(edits_);
  edits_.erase(std::ranges::unique(edits_).begin(), edits_.end()); // alignments
}

std::string OperandWords::sum(const std::vector<const clang::Expr*>& summands) const {
  std::string result;
  for (const clang::Expr* summand : summands) {
    result += (result.empty() ? "" : " + ") + text(*summand, Binding::Sum);
  }
  return result;
}

void OperandWords::remove_helpers() {
  for (const std::string_view helper : replaced_helpers()) {
    const clang::FunctionDecl* function = helpers_.find(helper);
    const auto calls = function == nullptr ? std::nullopt : references(kernel_, *function);
    if (calls && std::ranges::all_of(
                     *calls, [&](const Span& call) { return removal_.removes(call.begin); })) {
      removal_.function(*function);
    }
  }
}

// ---- the kernel ---------------------------------------------------------------------------------

void OperandWords::write_operand(const WarpOperand& operand) {
  Texts& texts = operand_texts_[&operand];
  texts = texts_;
  const std::string name = operand.tile->getNameAsString();
  texts["tile"] = tile_text(operand);
  texts["tile_across"] = text(*operand.tile_across, Binding::Product);
  texts["rounded"] = names_.fresh(name + "_rows");
  texts["group"] = names_.fresh(name + "_group");
  texts["across"] = operand.across->getNameAsString();
  texts["limit"] = operands_.depth->getNameAsString();
  texts["matrix"] = operand.matrix->getNameAsString();
  texts["split"] = names_.fresh("split_" + name);
  texts["passed"] = names_.fresh(name + "_words");
  texts["tile_words"] = filled_in("$tile_k / $depth * ($tile_across * $panel_words)", texts);
  if (operand.stages != nullptr) {
    texts["copies"] = names_.fresh(operands_.function->getNameAsString() + "_" + name + "_copies");
    constants_ += filled_in(split_texts::copies_text, texts);
  }
  declare_tile(operand, texts);
  declare_places(operand, texts);
  for (const TileCopy& copy : operand.copies) {
    write_copy(operand, copy, texts);
  }
  replace(span(operand.matrix->getSourceRange()),
          "const unsigned *" +
              std::string(operand.matrix->getType().isRestrictQualified() ? "__restrict__ " : "") +
              operand.matrix->getNameAsString());
}

namespace {

std::string copied_word(TileCopy::Way way, const std::string& to, const std::string& from,
                        const std::string& staged) {
  const std::string target = "*reinterpret_cast<uint4 *>(" + to + ")";
  const std::string source = "*reinterpret_cast<const uint4 *>(" + from + ")";
  switch (way) {
  case TileCopy::Way::Direct:
    return target + " = " + source + ";";
  case TileCopy::Way::Async:
    return "__pipeline_memcpy_async(" + to + ", " + from + ", sizeof(uint4));";
  case TileCopy::Way::ToRegisters:
    return staged + " = " + source + ";";
  case TileCopy::Way::FromRegisters:
    return target + " = " + staged + ";";
  }
  throw CannotWrite{};
}

} // namespace

std::string OperandWords::first_panel(const WarpOperand&, const std::string& k) const {
  return filled_in(k + " / $depth", texts_);
}

void OperandWords::write_copy(const WarpOperand& operand, const TileCopy& copy, Texts texts) {
  texts["tile"] += stage(copy.stage);
  texts["block_across"] = sum(copy.across);
  if (!copy.k.empty()) {
    texts["first_panel"] =
        first_panel(operand, copy.k.size() == 1 ? text(*copy.k.front(), Binding::Product)
                                                : "(" + sum(copy.k) + ")");
  }
  const std::string to = filled_in(split_texts::to_text, texts);
  const std::string from = copy.k.empty() ? "" : filled_in(split_texts::from_text, texts);
  const std::string staged = copy.registers == nullptr
                                 ? ""
                                 : filled_in(copy.registers->getNameAsString() + "[$copy]", texts);
  texts["copy_word"] =
      filled_in(split_texts::word_text, texts) + copied_word(copy.way, to, from, staged);
  const Span written = lines_of(*copy.statement);
  replace_code(written, filled_in(operand.stages == nullptr ? split_texts::loop_text
                                                            : split_texts::unrolled_text,
                                  texts));
  if (copy.way == TileCopy::Way::ToRegisters) {
    const Span declared = span(copy.registers->getSourceRange());
    replace_code(declared,
                 filled_in("uint4 " + copy.registers->getNameAsString() + "[$copies]", texts));
  }
}

/// With its pragmas, from the beginning of a line on, where a pragma may stand.
Span OperandWords::lines_of(const clang::Stmt& statement) const {
  const auto begin = begin_of(kernel_, statement);
  const unsigned line = line_begin(kernel_, begin ? *begin : throw CannotWrite{});
  return kernel_.source().find_first_not_of(' ', line) >= *begin
             ? Span{line, checked(span_of(kernel_, statement)).end}
             : throw CannotWrite{};
}

/// tiles.w of tiles.w[row][k].
std::string OperandWords::tile_text(const WarpOperand& operand) const {
  const clang::Expr* array = &element(operand);
  while (const auto* subscript =
             dyn_cast<clang::ArraySubscriptExpr>(array->IgnoreParenImpCasts())) {
    array = subscript->getBase();
  }
  return text(*array, Binding::Operand);
}

const clang::ArraySubscriptExpr& OperandWords::element(const WarpOperand& operand) const {
  const WarpMultiply& product = operands_.products.front();
  return *(&operand == &operands_.left ? product.left : product.right).element;
}

void OperandWords::declare_tile(const WarpOperand& operand, const Texts& texts) {
  auto type = operand.tile->getTypeSourceInfo()->getTypeLoc();
  const Span written = span({type.getBeginLoc(), type.getEndLoc()});
  replace_code(written,
               filled_in("unsigned " + operand.tile->getNameAsString() + stage(operand.stages) +
                             "[$tile_k / $depth][$tile_across * $panel_words]",
                         texts));
  const auto aligned = align_tile(kernel_, element(operand), 16);
  std::ranges::copy(aligned ? *aligned : throw CannotWrite{}, std::back_inserter(edits_));
}

void OperandWords::declare_places(const WarpOperand& operand, const Texts& texts) {
  const auto begin = begin_of(kernel_, statement());
  insert(begin ? *begin : throw CannotWrite{},
         filled_in("const int $rounded = $round_up($across, $tile_across);\n"
                   "const int $group = " +
                       operand.place->getNameAsString() + " / 8;\n",
                   texts));
}

// ---- the kernels before it ----------------------------------------------------------------------

std::vector<const clang::ParmVarDecl*> OperandWords::integers(const WarpOperand& operand) const {
  std::vector<const clang::ParmVarDecl*> result;
  for (const clang::ParmVarDecl* parameter : {operands_.depth, operand.across, operand.pitch}) {
    if (std::ranges::find(result, parameter) == result.end()) {
      result.push_back(parameter);
    }
  }
  return result;
}

/// Names that both passes use.
Texts OperandWords::pass_names() {
  Texts names;
  for (const char* name : {"row", "rows", "k", "i", "part", "values", "packed", "words"}) {
    names[name] = names_.fresh(std::string("split_") + name);
  }
  return names;
}

std::string OperandWords::pass_text(const WarpOperand& operand, Texts texts) const {
  const Texts& known = operand_texts_.at(&operand);
  texts.insert(known.begin(), known.end());
  const std::string pitch = operand.pitch->getNameAsString();
  texts["element"] = filled_in(operand.k_along_rows ? "$matrix[$row * " + pitch + " + $k + $i]"
                                                    : "$matrix[($k + $i) * " + pitch + " + $row]",
                               texts);
  for (const clang::ParmVarDecl* integer : integers(operand)) {
    texts["parameters"] += (texts["parameters"].empty() ? "" : ", ") +
                           declaration(kernel_, *integer, integer->getNameAsString());
  }
  return pass(operand, std::move(texts));
}

// ---- the entry ----------------------------------------------------------------------------------

std::string OperandWords::argument(const clang::ParmVarDecl& parameter) const {
  return text_of(kernel_, present(launch_.arguments[parameter.getFunctionScopeIndex()]));
}

Texts OperandWords::sizes_at_launch(const WarpOperand& operand) const {
  return {{"across", argument(*operand.across)}, {"limit", argument(*operands_.depth)}};
}

Texts OperandWords::sizes_in_workspace(const WarpOperand& operand,
                                       const clang::FunctionDecl& workspace) const {
  const auto size = [&](const clang::ParmVarDecl& side) {
    const clang::Expr* given = launch_.arguments[side.getFunctionScopeIndex()];
    const auto* parameter = clang::dyn_cast_or_null<clang::ParmVarDecl>(variable_of(given));
    return present(parameter_of_workspace(graph_.entry(), workspace, present(parameter)))
        .getNameAsString();
  };
  return {{"across", size(*operand.across)}, {"limit", size(*operands_.depth)}};
}

std::string OperandWords::bytes_in(Texts sizes, const WarpOperand& operand) const {
  const Texts& known = operand_texts_.at(&operand);
  sizes.insert(known.begin(), known.end());
  return filled_in(bytes(), sizes);
}

/// The words begin behind what the workspace holds already, the right operand's behind the left
/// one's.
void OperandWords::write_entry() {
  const auto& workspace = present(workspace_function(kernel_, graph_.entry()));
  const Span returned = span(present(bytes_returned(workspace)).getSourceRange());
  const std::string begin = names_.fresh(operands_.function->getNameAsString() + "_words");
  std::string parameters;
  std::string arguments;
  for (const clang::ParmVarDecl* parameter : workspace.parameters()) {
    const bool first = parameters.empty();
    parameters +=
        (first ? "" : ", ") + declaration(kernel_, *parameter, parameter->getNameAsString());
    arguments += (first ? "" : ", ") + parameter->getNameAsString();
  }
  const auto place = offset_before(kernel_, workspace);
  insert(place ? *place : throw CannotWrite{},
         "// Where in the workspace the operands of " + operands_.function->getNameAsString() +
             " begin, in bytes: where a line of the cache does.\nstatic size_t " + begin + "(" +
             parameters + ") { return (" + render(kernel_, returned) +
             " + 127) / 128 * 128; }\n\n");
  const Texts left = sizes_in_workspace(operands_.left, workspace);
  const Texts right = sizes_in_workspace(operands_.right, workspace);
  replace(returned, begin + "(" + arguments + ") + " + bytes_in(left, operands_.left) + " + " +
                        bytes_in(right, operands_.right) + further_bytes(left, right));
  write_launches(begin);
}

void OperandWords::write_launches(const std::string& begin) {
  const clang::FunctionDecl& entry = graph_.entry();
  std::string integers_given;
  const clang::ParmVarDecl* workspace = nullptr;
  for (const clang::ParmVarDecl* parameter : entry.parameters()) {
    if (parameter->getType()->isIntegerType()) {
      integers_given += (integers_given.empty() ? "" : ", ") + parameter->getNameAsString();
    }
    workspace = parameter->getType()->isVoidPointerType() ? parameter : workspace;
  }
  const Texts left = sizes_at_launch(operands_.left);
  std::string before = "unsigned *" + words(operands_.left) +
                       " = reinterpret_cast<unsigned *>(static_cast<char *>(" +
                       present(workspace).getNameAsString() + ") + " + begin + "(" +
                       integers_given + "));\nunsigned *" + words(operands_.right) + " = " +
                       words(operands_.left) + " + " + bytes_in(left, operands_.left) +
                       " / sizeof(unsigned);\n" +
                       further_regions(left, sizes_at_launch(operands_.right));
  for (const WarpOperand* operand : {&operands_.left, &operands_.right}) {
    before += pass_launch(*operand);
    replace(span(launch_.arguments[operand->matrix->getFunctionScopeIndex()]->getSourceRange()),
            words(*operand));
  }
  insert(checked(span_of(kernel_, *launch_.call)).begin, before);
}

std::string OperandWords::pass_launch(const WarpOperand& operand) const {
  Texts texts = sizes_at_launch(operand);
  const Texts& known = operand_texts_.at(&operand);
  texts.insert(known.begin(), known.end());
  std::string arguments =
      argument(*operand.matrix) + ", " + words(operand) + further_arguments(operand);
  for (const clang::ParmVarDecl* integer : integers(operand)) {
    arguments += ", " + argument(*integer);
  }
  const std::string stream =
      launch_.stream == nullptr ? "" : ", 0, " + text_of(kernel_, *launch_.stream);
  return texts.at("split") + "<<<" + filled_in(grid(operand), texts) + ", " + threads(operand) +
         stream + ">>>(" + arguments + ");\n";
}

std::vector<Gene> largest_product_on_tensor_cores(const Kernel& kernel, std::int64_t depth) {
  std::vector<Gene> result;
  std::int64_t most = 0;
  for (const ThreadBlock& block : thread_blocks(kernel)) {
    for (const ProductCore& core : product_cores(kernel, *block.function)) {
      const std::int64_t products = block.threads * products_per_step(kernel, core);
      if (products <= most) {
        continue;
      }
      most = products;
      result.clear();
      const clang::VarDecl* limit = variable_of(core.k.counted.limit);
      if (limit != nullptr && *trip_count(kernel, core.k.counted) % depth != 0) {
        result.push_back({std::string(reshape_tile().about().name),
                          block.function->getNameAsString() + "/" + limit->getNameAsString() + " " +
                              std::to_string(depth)});
      }
      result.push_back({std::string(tensorise().about().name), core.k.name + " bf16x3"});
    }
  }
  return result;
}

const Launch* only_launch(const DependenceGraph& graph, const clang::FunctionDecl& function) {
  const Launch* found = nullptr;
  for (const Launch& launch : graph.launches()) {
    if (launch.kernel == &function) {
      if (found != nullptr) {
        return nullptr;
      }
      found = &launch;
    }
  }
  return found;
}

} // namespace evo
