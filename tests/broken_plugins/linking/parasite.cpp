// Has no entry; the one that dlsym() finds belongs to the library it is linked to.
#include <treadle/plugin.h>
