#ifndef COALESCED_CYAML_SHIM_H
#define COALESCED_CYAML_SHIM_H

#include <yaml.h>

#endif
