#include "fitness/elf_digest.hpp"

#include <cstring>
#include <stdexcept>

#include <elf.h>

#include "mutators/rewrite.hpp"

namespace evo {
namespace {

std::string_view part(std::string_view elf, std::size_t offset, std::size_t size) {
  if (offset > elf.size() || size > elf.size() - offset) {
    throw std::runtime_error("a truncated ELF file");
  }
  return elf.substr(offset, size);
}

/// By copy: nothing in the file need be aligned.
template <typename T> T read(std::string_view elf, std::size_t offset) {
  T value;
  std::memcpy(&value, part(elf, offset, sizeof value).data(), sizeof value);
  return value;
}

} // namespace

std::string loaded_digest(std::string_view elf) {
  const auto header = read<Elf64_Ehdr>(elf, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    throw std::runtime_error("not an ELF64 file");
  }
  std::string loaded;
  for (int i = 0; i < header.e_shnum; ++i) {
    const auto section =
        read<Elf64_Shdr>(elf, header.e_shoff + i * std::size_t{header.e_shentsize});
    if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_type == SHT_NOTE) {
      continue;
    }
    loaded += std::to_string(section.sh_type) + ":" + std::to_string(section.sh_size) + ":";
    if (section.sh_type != SHT_NOBITS) {
      loaded += part(elf, section.sh_offset, section.sh_size);
    }
  }
  return digest(loaded);
}

} // namespace evo
