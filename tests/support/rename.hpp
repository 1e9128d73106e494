// Renames everything a file declares: a mutator must not live on names.
#pragma once

#include <map>
#include <string>

namespace evo::test {

struct Renamed {
  std::string source;                       // not canonical: line lengths changed
  std::map<std::string, std::string> names; // old to new
};

/// Gives every name that the file declares another one, the same for equal spellings, members,
/// kernels and types included. extern "C" functions keep theirs, and so does what the file only
/// uses (threadIdx.x stays although a struct of the file has a member x). The new names sort in the
/// reverse order of the old ones' appearance.
Renamed rename(const std::string& source);

/// A rewrite's label with the names in it renamed.
std::string rename_label(const std::string& label, const std::map<std::string, std::string>& names);

/// The tokens, one a line, without comments, every declared name replaced by its rank of
/// appearance: equal exactly for files that differ by names and layout only.
std::string shape(const std::string& source);

} // namespace evo::test
