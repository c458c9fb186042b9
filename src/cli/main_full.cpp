#include "cli/program.hpp"

int main(int argc, char** argv) { return lockflight::cli::run_program(argc, argv); }
