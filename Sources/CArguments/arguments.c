// Swift looks for the arguments below `environ`, which setenv(3) moves: if a library that was loaded before the program
// has called that (libfaketime does), Swift finds none. glibc hands them to each constructor, whatever became of the environment.
#include "arguments.h"
#include <features.h>

#ifndef __GLIBC__
#error "Constructors get arguments from glibc only: find another way here."
#endif

// Written once, before `main`.
static int count;
static char **arguments;

__attribute__((constructor)) static void keep(int handed_count, char **handed) {
    count = handed ? handed_count : 0;
    arguments = handed;
}

int coalesced_argument_count(void) { return count; }
char *const *coalesced_arguments(void) { return arguments; }
