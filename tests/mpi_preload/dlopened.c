/* Runs the main function of a module that it loads as Python loads one: the names of the module,
 * and of the MPI that it is linked with, stay local.
 *
 * usage: dlopened MODULE */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* const module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (module == NULL) {
    fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: dlopened MODULE");
    return 2;
  }
  int (*its_main)(int, char**) = NULL;
  *(void**)&its_main = dlsym(module, "main");
  return its_main(argc - 1, argv + 1);
}
