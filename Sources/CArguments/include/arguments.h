/// The arguments that `main` gets. They are known before anything of the program runs, and stay as long as it does.
#ifndef COALESCED_ARGUMENTS_H
#define COALESCED_ARGUMENTS_H

/// How many there are, the program's name counted; 0 if none were handed over.
int coalesced_argument_count(void);
/// As many C strings, and a null pointer.
char *const *coalesced_arguments(void);

#endif
