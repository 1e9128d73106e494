#include "fitness/precision.hpp"

#include <array>

#include <nlohmann/json.hpp>

#include "fitness/named.hpp"

namespace evo {
namespace {

constexpr std::array all_precisions{
    PrecisionClass::Unknown, PrecisionClass::Fp64, PrecisionClass::Ffma, PrecisionClass::Tf32,
    PrecisionClass::Bf16,    PrecisionClass::Fp16, PrecisionClass::Fp8,  PrecisionClass::Int8};

} // namespace

std::string_view to_string(PrecisionClass precision) {
  switch (precision) {
  case PrecisionClass::Unknown:
    return "unknown";
  case PrecisionClass::Fp64:
    return "fp64";
  case PrecisionClass::Ffma:
    return "ffma";
  case PrecisionClass::Tf32:
    return "tf32";
  case PrecisionClass::Bf16:
    return "bf16";
  case PrecisionClass::Fp16:
    return "fp16";
  case PrecisionClass::Fp8:
    return "fp8";
  case PrecisionClass::Int8:
    return "int8";
  }
  return "unknown";
}

std::optional<PrecisionClass> precision_from(std::string_view text) {
  return find_named(all_precisions, text);
}

PrecisionClass precision_class(const Products& products) {
  return products.empty() ? PrecisionClass::Unknown : products.rbegin()->first;
}

std::string describe(const Products& products) {
  const PrecisionClass fastest = precision_class(products);
  std::string text;
  for (const auto& [precision, count] : products) {
    if (precision == PrecisionClass::Ffma && fastest != precision) {
      continue;
    }
    text += (text.empty() ? "" : " + ") + std::string(to_string(precision));
  }
  return text.empty() ? "unknown" : text;
}

nlohmann::json to_record(const Products& products) {
  auto record = nlohmann::json::object();
  for (const auto& [precision, count] : products) {
    record[std::string(to_string(precision))] = count;
  }
  return record;
}

Products products_from(const nlohmann::json& record) {
  Products products;
  for (const auto& [name, count] : record.items()) {
    products[precision_from(name).value_or(PrecisionClass::Unknown)] = count.get<int>();
  }
  return products;
}

} // namespace evo
