// What a kernel multiplies in, read from its machine code, never from its source or its name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace evo {

/// The kinds of product instructions, the ones with the higher peak rate later.
enum class PrecisionClass { Unknown, Fp64, Ffma, Tf32, Bf16, Fp16, Fp8, Int8 };

/// "fp16": as logs and snapshots write it.
std::string_view to_string(PrecisionClass precision);
std::optional<PrecisionClass> precision_from(std::string_view text);

/// Instructions by what they multiply; none for code that was not read.
using Products = std::map<PrecisionClass, int>;

/// The class of the code: that of its fastest product instruction. Unknown for none.
PrecisionClass precision_class(const Products& products);

/// "fp16 + int8", slowest first. FFMA, which scales and adds in every kernel, is named only where
/// it is the class. "unknown" for none.
std::string describe(const Products& products);

/// {"fp16": 128, "ffma": 16}
nlohmann::json to_record(const Products& products);
/// Throws nlohmann::json::exception for what is no such record.
Products products_from(const nlohmann::json& record);

} // namespace evo
