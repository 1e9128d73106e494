#include "fitness/sass.hpp"

#include <sstream>

#include "fitness/artifact_cache.hpp"
#include "fitness/process.hpp"
#include "fitness/programs.hpp"
#include "fitness/ptxas_report.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// HMMA.16816.F32.BF16, HGMMA.64x128x8.F32.TF32: without a name the operands are fp16.
PrecisionClass of_half_matrix(std::string_view opcode) {
  return has(opcode, "TF32")   ? PrecisionClass::Tf32
         : has(opcode, "BF16") ? PrecisionClass::Bf16
                               : PrecisionClass::Fp16;
}

/// Unknown for everything that is no product.
PrecisionClass classify(std::string_view opcode, std::string_view operands) {
  const std::string_view name = opcode.substr(0, opcode.find('.'));
  if (name == "HMMA" || name == "HGMMA") {
    return of_half_matrix(opcode);
  }
  if (name == "IMMA" || name == "IGMMA" || name == "IDP") {
    return PrecisionClass::Int8;
  }
  if (name == "QMMA" || name == "QGMMA") {
    return PrecisionClass::Fp8;
  }
  if (name.starts_with("HFMA2") || name == "HMUL2") {
    return has(operands, "-RZ, RZ") ? PrecisionClass::Unknown : of_half_matrix(opcode);
  }
  if (name.starts_with("FFMA") || name.starts_with("FMUL")) {
    return PrecisionClass::Ffma;
  }
  const bool fp64 = name == "DFMA" || name == "DMUL" || name == "DMMA";
  return fp64 ? PrecisionClass::Fp64 : PrecisionClass::Unknown;
}

/// "/*0170*/ @!P0 FFMA.FTZ R0, R1, R2, R3 ; /* 0x... */"
PrecisionClass classify(const std::string& line) {
  const auto address = line.find("*/");
  if (address == std::string::npos) {
    return PrecisionClass::Unknown;
  }
  std::istringstream words(line.substr(address + 2));
  std::string opcode;
  words >> opcode;
  if (opcode.starts_with('@')) {
    words >> opcode;
  }
  std::string operands;
  std::getline(words, operands, ';');
  return classify(opcode, operands);
}

} // namespace

std::map<std::string, Products> parse_sass(std::string_view listing) {
  constexpr std::string_view header = "Function : ";
  std::map<std::string, Products> kernels;
  std::string name;
  std::istringstream lines{std::string(listing)};
  for (std::string line; std::getline(lines, line);) {
    if (const auto at = line.find(header); at != std::string::npos) {
      name = plain_kernel_name(line.substr(at + header.size()));
      continue;
    }
    const PrecisionClass precision = classify(line);
    if (precision != PrecisionClass::Unknown && !name.empty()) {
      ++kernels[name][precision];
    }
  }
  return kernels;
}

std::optional<fs::path> find_cuobjdump(const fs::path& nvcc) {
  return find_program("cuobjdump", {nvcc.parent_path(), fs::weakly_canonical(nvcc).parent_path()});
}

std::map<std::string, Products> read_products(const fs::path& cuobjdump, const fs::path& library,
                                              const fs::path& folder, std::stop_token stop) {
  const fs::path listing = folder / "sass";
  const ProcessResult ended = run_process(
      {"/bin/sh", "-c", "exec \"$0\" -sass \"$1\" > \"$2\"", cuobjdump.string(), library.string(),
       listing.string()},
      {.directory = folder, .environment = {{"TMPDIR", folder.string()}}}, std::move(stop));
  return ended.ok() ? parse_sass(read_file(listing)) : std::map<std::string, Products>{};
}

} // namespace evo
