#!/usr/bin/env python3
"""Two classes of one qualified name are undefined behaviour that no linker reports: their inline
functions are merged. One of an unnamed namespace may not have the name of another either: sources
are compiled in batches. Reads the sources (clang-format's layout) and names each such pair."""
import collections
import pathlib
import re
import sys

NAMESPACE = re.compile(r"namespace ([\w:]*) ?\{$")
CLOSE = re.compile(r"\} // namespace")
CLASS = re.compile(r"(?:class|struct|union|enum class|enum) (\w+)(?: final)?(?: \{| :(?!:)|$)")


def definitions(text):
    """Qualified names of the classes that a file defines, as if its unnamed namespaces were none."""
    scopes = []
    for line in text.splitlines():
        if opened := NAMESPACE.match(line):
            scopes.append(opened[1])
        elif CLOSE.match(line):
            scopes.pop()
        elif found := CLASS.match(line):
            yield "::".join([*filter(None, scopes), found[1]])


def main(root):
    places = collections.defaultdict(list)
    for folder in ("fitness", "mutators", "population", "tests/support"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            for name in definitions(path.read_text()):
                places[name].append(str(path.relative_to(root)))
    twice = {name: files for name, files in places.items() if len(files) > 1}
    for name, files in twice.items():
        print(f"{name} is defined in {' and in '.join(files)}: rename one")
    assert len(places) > 100, "this test reads the layout no more"
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
