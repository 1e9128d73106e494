// LLVM takes names of temporary files from arc4random where glibc has it: since 2.36. Defined here,
// a program that was linked there also starts on Ubuntu 22.04 (glibc 2.35).
#include <cstdint>
#include <cstdlib>

#include <sys/random.h>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) {
    std::abort();
  }
  return value;
}
