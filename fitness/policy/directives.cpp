#include "fitness/policy/directives.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include <clang/AST/ASTContext.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

#include "fitness/policy/finding.hpp"
#include "fitness/policy/names.hpp"
#include "mutators/cuda_declarations.hpp"

namespace evo::policy {
namespace {

constexpr std::string_view architecture = "__CUDA_ARCH__";

struct Word {
  std::string text; // as it is after line splices
  clang::Token token;
};

bool contains(std::initializer_list<std::string_view> list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

/// __FILE__, __CUDACC__: macros that differ between compilers, or between places.
bool is_reserved_macro(std::string_view name) {
  return name.size() > 2 && name.starts_with("__") &&
         std::isupper(static_cast<unsigned char>(name[2])) != 0;
}

bool is_provided(std::string_view header) {
  return std::ranges::any_of(embedded_headers(), [&](const EmbeddedHeader& embedded) {
    return header == "<" + std::string(embedded.name) + ">" ||
           header == "\"" + std::string(embedded.name) + "\"";
  });
}

/// Reads the main file token by token, also what no compilation of it sees.
class Reader {
public:
  explicit Reader(const clang::ASTContext& ast) : ast_(ast), sources_(ast.getSourceManager()) {}

  std::variant<std::vector<int>, std::string> read() {
    if (const auto finding = characters()) {
      return sentence(*finding, "", sources_.getLocForStartOfFile(sources_.getMainFileID()),
                      sources_);
    }
    const std::vector<Word> words = lex();
    for (std::size_t begin = 0, end = 0; begin < words.size(); begin = end) {
      end = begin + 1;
      while (end < words.size() && !words[end].token.isAtStartOfLine()) {
        ++end;
      }
      const std::span line = std::span(words).subspan(begin, end - begin);
      const auto finding = line.front().token.is(clang::tok::hash) ? directive(line) : code(line);
      if (finding) {
        return sentence(*finding, "", line.front().token.getLocation(), sources_);
      }
    }
    return std::vector<int>(bounds_.begin(), bounds_.end());
  }

private:
  using Words = std::span<const Word>;

  std::vector<Word> lex() const {
    const clang::FileID file = sources_.getMainFileID();
    clang::Lexer lexer(file, sources_.getBufferOrFake(file), sources_, ast_.getLangOpts());
    std::vector<Word> words;
    clang::Token token;
    while (lexer.LexFromRawLexer(token), token.isNot(clang::tok::eof)) {
      words.push_back({clang::Lexer::getSpelling(token, sources_, ast_.getLangOpts()), token});
    }
    return words;
  }

  /// Trigraphs and control characters: compilers disagree on them.
  std::optional<Finding> characters() const {
    const std::string_view text = sources_.getBufferData(sources_.getMainFileID());
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::string_view rest = text.substr(i);
      const bool control = std::iscntrl(static_cast<unsigned char>(text[i])) != 0 &&
                           text[i] != '\n' && text[i] != '\t' && !rest.starts_with("\r\n");
      const bool trigraph = rest.starts_with("??") && rest.size() > 2 &&
                            std::string_view("=/'()!<>-").find(rest[2]) != std::string_view::npos;
      if (control || trigraph) {
        return Finding{"holds a trigraph or a control character", "remove it"};
      }
    }
    return std::nullopt;
  }

  std::optional<Finding> directive(Words line) {
    if (line.size() == 1) {
      return std::nullopt;
    }
    const std::string& name = line[1].text;
    const Words rest = line.subspan(2);
    if (contains({"if", "elif", "ifdef", "ifndef"}, name)) {
      return condition(rest);
    }
    if (name == "include") {
      return include(rest);
    }
    if (name == "define" || name == "undef") {
      seen_macro_ = true;
      return macro(rest);
    }
    if (contains({"else", "endif"}, name)) {
      return std::nullopt;
    }
    if (name == "pragma" && !rest.empty() &&
        contains({"once", "unroll", "nounroll"}, rest[0].text)) {
      return std::nullopt;
    }
    return Finding{
        "has a #" + name + (rest.empty() ? "" : " " + rest[0].text),
        "of directives only #include, #define, #undef, #if and #pragma unroll are let in"};
  }

  std::optional<Finding> condition(Words words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& text = words[i].text;
      const bool compared = i > 0 && contains({">=", "<"}, words[i - 1].text);
      int bound = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bound);
      const bool number = error == std::errc() && end == text.data() + text.size();
      if (number && compared) {
        bounds_.insert(bound);
      } else if (text != architecture &&
                 !contains({"defined", "(", ")", "!", "&&", "||", ">=", "<", "0", "1"}, text)) {
        return Finding{"has an #if on '" + text + "'",
                       "test only defined(__CUDA_ARCH__) and __CUDA_ARCH__ >= or < a number"};
      }
    }
    return std::nullopt;
  }

  std::optional<Finding> include(Words words) const {
    std::string header;
    for (const Word& word : words) {
      header += word.text;
    }
    if (seen_macro_) {
      return Finding{"includes " + header + " after a #define", "put the includes first"};
    }
    if (!is_provided(header)) {
      return Finding{"includes " + header,
                     "a kernel file may include " + std::string(provided_headers())};
    }
    return std::nullopt;
  }

  std::optional<Finding> macro(Words words) const {
    const std::string name = words.empty() ? "" : words[0].text;
    if (name.starts_with("__") || belongs_to_the_system(name) ||
        ast_.Idents.get(name).isKeyword(ast_.getLangOpts())) {
      return Finding{"makes a macro of '" + name +
                         "', a word of the language, of CUDA or of the "
                         "compiler",
                     "choose another name"};
    }
    const auto pastes = [](const Word& word) { return word.token.is(clang::tok::hashhash); };
    if (std::ranges::any_of(words, pastes)) {
      return Finding{"pastes tokens in the macro '" + name + "'", "write the names out"};
    }
    return code(words);
  }

  /// Not a directive, or a macro's body.
  static std::optional<Finding> code(Words words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& text = words[i].text;
      if (words[i].token.isNot(clang::tok::raw_identifier)) {
        continue;
      }
      if (is_reserved_macro(text)) {
        return Finding{"uses '" + text + "', which is not the same to every compiler",
                       text == architecture ? "test it in an #if" : "remove it"};
      }
      if (text == "_Pragma" && (i + 2 >= words.size() || !is_unroll(words[i + 2].text))) {
        return Finding{"has a _Pragma that is not about unrolling", "remove it"};
      }
    }
    return std::nullopt;
  }

  static bool is_unroll(std::string_view literal) {
    return literal.starts_with("\"unroll") || literal.starts_with("\"nounroll");
  }

  const clang::ASTContext& ast_;
  const clang::SourceManager& sources_;
  std::set<int> bounds_;
  bool seen_macro_ = false;
};

} // namespace

std::variant<std::vector<int>, std::string> read_directives(const Kernel& kernel) {
  return Reader(kernel.ast()).read();
}

} // namespace evo::policy
