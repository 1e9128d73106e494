#include "mutators/kernel.hpp"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace evo {
namespace {

std::variant<Kernel, ParseError> parse(std::string source) {
  return Kernel::parse(std::move(source), *Target::find("sm_86"));
}

std::string read(const std::string& file) {
  std::ifstream stream(std::string(EVO_SOURCE_DIR) + "/" + file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(Kernel, ParsesTheSeeds) {
  for (const char* seed : {"seeds/lora/naive.cu", "seeds/lora/tiled.cu"}) {
    const auto result = parse(read(seed));
    const auto* error = std::get_if<ParseError>(&result);
    EXPECT_EQ(error, nullptr) << seed << ": " << (error != nullptr ? error->message : "");
  }
}

TEST(Kernel, SeesWhatStandsUnderTheTargetsArchitecture) {
  const auto seen =
      parse("#if __CUDA_ARCH__ == 860\n__global__ void seen() { nonsense; }\n#endif\n");
  EXPECT_TRUE(std::holds_alternative<ParseError>(seen));
}

TEST(Kernel, SaysWhereASyntaxErrorIs) {
  const auto result = parse("__global__ void f() {\n  int x = ;\n}\n");
  ASSERT_TRUE(std::holds_alternative<ParseError>(result));
  EXPECT_EQ(std::get<ParseError>(result).message, "2:11: expected expression");
}

TEST(Kernel, NamesAHeaderItDoesNotProvide) {
  const auto result = parse("#include <mma.h>\n");
  ASSERT_TRUE(std::holds_alternative<ParseError>(result));
  EXPECT_NE(std::get<ParseError>(result).message.find("'mma.h' file not found"), std::string::npos);
  EXPECT_NE(std::get<ParseError>(result).message.find("<cuda_runtime.h>"), std::string::npos);
}

} // namespace
} // namespace evo
