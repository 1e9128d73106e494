#!/usr/bin/env bash
# Writes the skeleton of a mutator: its .cpp, its registry and CMake lines, and three test kernels.
# usage: scripts/new_mutator.sh NAME      (snake_case)
set -eu
cd "$(dirname "$0")/.."
name=${1:?usage: scripts/new_mutator.sh NAME}
[[ $name =~ ^[a-z][a-z0-9_]*$ ]] || { echo "'$name' is not snake_case" >&2; exit 2; }
[ ! -e "mutators/$name.cpp" ] || { echo "mutators/$name.cpp exists already" >&2; exit 2; }
class=$(sed -E 's/(^|_)([a-z0-9])/\U\2/g' <<<"$name")

cat >"mutators/$name.cpp" <<END
// <What it does, in one line>.
//
//   before                      after
//   <a few lines of CUDA>       <what becomes of them>
//
// Precondition: <what must be proved, and how>.
// Expected gain: <why it should be faster, and when it is not>.
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"

namespace evo {
namespace {

class $class : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "$name",
        .summary = "<one line>",
        .before = "<before>",
        .after = "<after>",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    static_cast<void>(kernel);
    return {};
  }
};

} // namespace

const Mutator& $name() {
  static const $class mutator;
  return mutator;
}

} // namespace evo
END
sed -i "s|^// end of mutators\$|const Mutator\& $name();\n&|" mutators/registry.hpp
sed -i "s|^ *// end of mutators\$|      \&$name(),\n&|" mutators/registry.cpp
sed -i "s|^ *# end of mutators\$|  $name.cpp\n&|" mutators/CMakeLists.txt

folder=tests/mutators/$name
mkdir -p "$folder"
echo "// label: <the rewrite to apply>" >"$folder/before.cu"
echo "// <why nothing may be proposed here>" >"$folder/unchanged.cu"
touch "$folder/after.cu"
echo "wrote mutators/$name.cpp and $folder/{before,after,unchanged}.cu;"
echo "fill them in, build mutators_test, run scripts/update_golden.sh $name"
