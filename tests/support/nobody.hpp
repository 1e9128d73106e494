// Rights mean nothing to root, so tests of them are somebody else's.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

namespace evo {

/// While it lives, the process has nobody's rights where it had root's.
class Nobody {
public:
  Nobody() { EXPECT_TRUE(geteuid() != 0 || seteuid(65534) == 0); }
  Nobody(const Nobody&) = delete;
  Nobody& operator=(const Nobody&) = delete;
  ~Nobody() { EXPECT_TRUE(getuid() != 0 || seteuid(0) == 0); }
};

} // namespace evo
