// Has a manifest and no entry.
#include <treadle/plugin.h>
