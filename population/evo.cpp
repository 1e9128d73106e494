#include "population/cli.hpp"

int main(int argc, char** argv) {
  return evo::main_of(argc, argv);
}
